# Everything we use, all in Debian's packages (scripts/install-packages); why each: docs/decisions.
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
# Random123 (Philox) is header-only and has no CMake package.
find_path(MSRL_RANDOM123_DIR Random123/philox.h REQUIRED)
if(MSRL_CORE_ONLY)
  return()
endif()

find_package(nlohmann_json 3.11 REQUIRED)
find_package(MuJoCo REQUIRED)
find_package(PNG REQUIRED)
find_package(HDF5C REQUIRED)
find_package(Threads REQUIRED)
if(MSRL_BUILD_APPS)
  find_package(CLI11 REQUIRED)
  find_package(fmt REQUIRED)
endif()
if(MSRL_BUILD_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
  include(GoogleTest)
endif()
if(MSRL_BUILD_BENCH)
  find_package(benchmark REQUIRED)
  find_library(MSRL_OPENBLAS openblas REQUIRED)
endif()

# hnswlib is header-only and has no CMake package in Debian.
find_path(MSRL_HNSWLIB_DIR hnswlib/hnswlib.h REQUIRED)
# toml++ is used header-only; its CMake package is absent in some distributions.
find_path(MSRL_TOMLPLUSPLUS_DIR toml++/toml.h REQUIRED)

# libtorch serves msrl::torch only. It is not built with sanitizers, so neither is what uses it.
if(MSRL_SANITIZE)
  set(Torch_FOUND OFF)
else()
  find_package(Torch QUIET)
endif()
option(MSRL_BUILD_TORCH "Build msrl::torch (needs libtorch)" ${Torch_FOUND})
if(MSRL_BUILD_TORCH AND NOT Torch_FOUND)
  find_package(Torch REQUIRED)
endif()
