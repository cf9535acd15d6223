# One target per folder, one test executable per folder, one set of flags for all of them.

include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(MSRL_CCACHE ccache)
if(MSRL_CCACHE AND PROJECT_IS_TOP_LEVEL)
  # paths relative to the source, so that a second clone compiles nothing again; the sloppiness lets
  # ccache work together with precompiled headers
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
      CCACHE_NOHASHDIR=true CCACHE_SLOPPINESS=pch_defines,time_macros ${MSRL_CCACHE})
endif()

# Sanitizer builds: clang without optimisation compiles Eigen five times faster than GCC with -O2.
set(CMAKE_CXX_FLAGS_SANITIZE "-O0 -g1")

# Checks (MSRL_CHECK) are always on; NDEBUG only switches off those of the dependencies.
add_library(msrl_flags INTERFACE)
target_compile_options(msrl_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                       -Wno-sign-conversion -Werror -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # ccache needs it with precompiled headers
  target_compile_options(msrl_flags INTERFACE -fpch-preprocess)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # false alarms on std::string concatenation, GCC bug 105651
    target_compile_options(msrl_flags INTERFACE -Wno-restrict)
  endif()
else()
  target_compile_options(msrl_flags INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
endif()
if(MSRL_SANITIZE)
  set(msrl_sanitize_flags -fsanitize=${MSRL_SANITIZE} -fno-sanitize-recover=all
      -fno-omit-frame-pointer)
  target_compile_options(msrl_flags INTERFACE ${msrl_sanitize_flags} -D_GLIBCXX_ASSERTIONS
                         $<$<BOOL:${MSRL_FUZZ}>:-fsanitize=fuzzer-no-link>)
  target_link_options(msrl_flags INTERFACE ${msrl_sanitize_flags})
endif()

# Parsing these is half of a test's compile time: all tests share what this program compiles.
function(msrl_make_test_headers)
  set(source ${PROJECT_BINARY_DIR}/test_headers.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "int main() {}\n")
  add_executable(test_headers ${source})
  target_link_libraries(test_headers PRIVATE msrl_flags GTest::gtest rapidcheck Eigen3::Eigen)
  target_compile_options(test_headers PRIVATE $<$<CONFIG:Release>:-O1>)
  target_precompile_headers(test_headers PRIVATE <gtest/gtest.h> <rapidcheck/gtest.h> <Eigen/Core>)
endfunction()

# msrl_add_library(<folder> SOURCES ... [PUBLIC deps] [PRIVATE deps] [TESTS ...] [TEST_LINK deps]
#                  [NO_INSTALL])
# makes msrl::<folder>; the tests build into one executable <folder>_test once msrl::testing exists.
function(msrl_add_library name)
  cmake_parse_arguments(ARG "NO_INSTALL" "" "SOURCES;PUBLIC;PRIVATE;TESTS;TEST_LINK" ${ARGN})
  add_library(msrl_${name} STATIC ${ARG_SOURCES})
  add_library(msrl::${name} ALIAS msrl_${name})
  set_target_properties(msrl_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(msrl_${name} PUBLIC cxx_std_20)
  target_include_directories(msrl_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(msrl_${name} PUBLIC ${ARG_PUBLIC}
    PRIVATE $<BUILD_INTERFACE:msrl_flags> ${ARG_PRIVATE})
  if(NOT ARG_NO_INSTALL)
    set_property(GLOBAL APPEND PROPERTY MSRL_INSTALLED_FOLDERS ${name})
  endif()
  if(ARG_TESTS AND MSRL_BUILD_TESTS)
    msrl_add_test(${name}_test SOURCES ${ARG_TESTS} LINK msrl::${name} ${ARG_TEST_LINK})
  endif()
endfunction()

# msrl_add_test(<name> SOURCES ... LINK ...): a GoogleTest executable, one ctest entry per test case.
function(msrl_add_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE msrl_flags msrl_testing ${ARG_LINK})
  # what is tested keeps its optimisation; the tests themselves compile faster with less
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(NOT "${ARG_LINK}" MATCHES "torch")  # whose flags differ
    if(NOT TARGET test_headers)
      msrl_make_test_headers()
    endif()
    target_precompile_headers(${name} REUSE_FROM test_headers)
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
endfunction()
