# One target per folder, one test executable per folder, one set of flags for all of them. Why it is
# built this way, with figures: docs/decisions/004-build-time.md.

include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

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

# Checks (MSRL_CHECK) are always on; NDEBUG only switches off those of the dependencies. -fPIC in
# programs too: precompiled headers are shared between equal flags only.
add_library(msrl_flags INTERFACE)
target_compile_options(msrl_flags INTERFACE -fPIC -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                       -Wno-sign-conversion -Werror -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # ccache needs it with precompiled headers
  target_compile_options(msrl_flags INTERFACE -fpch-preprocess)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # false alarms on std::string concatenation, GCC bug 105651, the last two with precompiled
    # headers; clang's own check stays on in the sanitizer build
    target_compile_options(msrl_flags INTERFACE -Wno-restrict -Wno-stringop-overflow
                           -Wno-array-bounds)
  endif()
else()
  target_compile_options(msrl_flags INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
  find_program(MSRL_LLD ld.lld)
  if(MSRL_LLD)
    target_link_options(msrl_flags INTERFACE -fuse-ld=lld)
  endif()
endif()
if(MSRL_SANITIZE)
  set(msrl_sanitize_flags -fsanitize=${MSRL_SANITIZE} -fno-sanitize-recover=all
      -fno-omit-frame-pointer)
  target_compile_options(msrl_flags INTERFACE ${msrl_sanitize_flags} -D_GLIBCXX_ASSERTIONS
                         $<$<BOOL:${MSRL_FUZZ}>:-fsanitize=fuzzer-no-link>)
  target_link_options(msrl_flags INTERFACE ${msrl_sanitize_flags})
endif()

# ---- precompiled headers: shared, since making a set takes as long as compiling three files ----

# msrl_make_headers(<name> HEADERS ... [LINK ...] [OPTIONS ...])
function(msrl_make_headers name)
  cmake_parse_arguments(ARG "" "" "HEADERS;LINK;OPTIONS" ${ARGN})
  set(source ${PROJECT_BINARY_DIR}/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "")
  add_library(${name} OBJECT ${source})
  target_link_libraries(${name} PRIVATE msrl_flags ${ARG_LINK})
  target_compile_options(${name} PRIVATE ${ARG_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()

# msrl_use_headers(<target> product | product_hot | cli | test)
function(msrl_use_headers target kind)
  set(name msrl_${kind}_headers)
  set(eigen <Eigen/Core>)
  set(link Eigen3::Eigen)
  set(json "")
  if(TARGET nlohmann_json::nlohmann_json)
    list(APPEND link nlohmann_json::nlohmann_json)
    set(json <nlohmann/json.hpp>)
  endif()
  set(standard <algorithm> <array> <chrono> <cmath> <cstdint> <filesystem> <fstream> <functional>
      <map> <memory> <numeric> <optional> <set> <span> <sstream> <string> <string_view> <utility>
      <variant> <vector>)
  if(TARGET ${name})
  elseif(kind STREQUAL "product")
    msrl_make_headers(${name} HEADERS ${eigen} ${json} ${standard} LINK ${link})
  elseif(kind STREQUAL "product_hot")  # clang wants equal optimisation
    msrl_make_headers(${name} HEADERS ${eigen} ${json} ${standard} LINK ${link} OPTIONS ${MSRL_HOT})
  elseif(kind STREQUAL "cli")
    msrl_make_headers(${name} HEADERS <CLI/CLI.hpp> <fmt/format.h> ${eigen} ${json} ${standard}
                      LINK ${link} CLI11::CLI11 fmt::fmt OPTIONS ${MSRL_QUICK})
  else()
    msrl_make_headers(${name} HEADERS <gtest/gtest.h> <rapidcheck/gtest.h> ${eigen} ${standard}
                      LINK ${link} GTest::gtest rapidcheck OPTIONS ${MSRL_QUICK})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${name})
endfunction()

# ---- targets ----

# what runs by the thousand: without optimisation the sanitizer tests would take minutes
set(MSRL_HOT $<$<CONFIG:Sanitize>:-O2>)
# what runs seldom is not worth the compile time of -O3
set(MSRL_QUICK $<$<CONFIG:Release>:-O1>)

# msrl_add_library(<folder> [SOURCES ...] [PUBLIC deps] [PRIVATE deps] [PACKAGES ...] [HOT] [CLI]
#                  [TESTS ...] [TEST_LINK deps] [STATISTICS patterns] [TOGETHER patterns]
#                  [NO_INSTALL])
# makes msrl::<folder> of the given files, or of all in the folder and one level below; *_test.cc are
# its tests. PACKAGES are those that a user of the installed library needs, each as
# find_package gets it ("Eigen3 3.4"). HOT: optimised under the sanitizers too. CLI: reads arguments
# and prints. The rest goes to msrl_add_test.
function(msrl_add_library name)
  cmake_parse_arguments(ARG "NO_INSTALL;HOT;CLI" ""
                        "SOURCES;PUBLIC;PRIVATE;PACKAGES;TESTS;TEST_LINK;STATISTICS;TOGETHER" ${ARGN})
  if(NOT ARG_SOURCES)
    file(GLOB ARG_SOURCES CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.cc */*.cc)
    set(ARG_TESTS ${ARG_SOURCES})
    list(FILTER ARG_SOURCES EXCLUDE REGEX "_test\\.cc$")
    list(FILTER ARG_TESTS INCLUDE REGEX "_test\\.cc$")
  endif()
  add_library(msrl_${name} STATIC ${ARG_SOURCES})
  add_library(msrl::${name} ALIAS msrl_${name})
  set_target_properties(msrl_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(msrl_${name} PUBLIC cxx_std_20)
  target_include_directories(msrl_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(msrl_${name} PUBLIC ${ARG_PUBLIC}
    PRIVATE $<BUILD_INTERFACE:msrl_flags> ${ARG_PRIVATE})
  if(ARG_HOT)
    target_compile_options(msrl_${name} PRIVATE ${MSRL_HOT})
    set_property(GLOBAL APPEND PROPERTY MSRL_HOT_LIBRARIES msrl_${name})
  endif()

  if(NOT "${ARG_PUBLIC}" MATCHES "torch")  # whose flags differ
    if(ARG_CLI)
      target_compile_options(msrl_${name} PRIVATE ${MSRL_QUICK})
      msrl_use_headers(msrl_${name} cli)
    elseif(ARG_HOT AND CMAKE_BUILD_TYPE STREQUAL "Sanitize")
      msrl_use_headers(msrl_${name} product_hot)
    else()
      msrl_use_headers(msrl_${name} product)
    endif()
  endif()
  foreach(source IN LISTS ARG_SOURCES)
    set(json "")
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${source})
      file(STRINGS ${source} json REGEX "<nlohmann/json.hpp>")
    endif()
    if(json)  # three times the code of any other file, and nothing but text in it
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS ${MSRL_QUICK}
                   $<$<CONFIG:Sanitize>:-O0>)
    endif()
    # the headers are compiled for any processor, and in a hot folder with optimisation
    if(source MATCHES "_avx" OR (json AND ARG_HOT AND CMAKE_BUILD_TYPE STREQUAL "Sanitize"))
      set_property(SOURCE ${source} PROPERTY SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()

  if(NOT ARG_NO_INSTALL)
    set(folders ${ARG_PUBLIC} ${ARG_PRIVATE})
    list(FILTER folders INCLUDE REGEX "^msrl::")
    list(TRANSFORM folders REPLACE "^msrl::" "")
    set_property(GLOBAL APPEND PROPERTY MSRL_INSTALLED_FOLDERS ${name})
    set_property(GLOBAL PROPERTY MSRL_FOLDERS_OF_${name} ${folders})
    set_property(GLOBAL PROPERTY MSRL_PACKAGES_OF_${name} ${ARG_PACKAGES})
  endif()
  if(ARG_TESTS AND MSRL_BUILD_TESTS)
    msrl_add_test(${name}_test UNIT SOURCES ${ARG_TESTS} LINK msrl::${name} ${ARG_TEST_LINK}
                  STATISTICS ${ARG_STATISTICS} TOGETHER ${ARG_TOGETHER})
  endif()
endfunction()

# msrl_add_test(<name> SOURCES ... LINK ... [STATISTICS patterns] [TOGETHER patterns] [UNIT])
# A GoogleTest program, one ctest entry per test case. Cases that match a pattern of STATISTICS
# (as in --gtest_filter) look for wrong figures over many samples: they get the label `statistics`
# and are left out under the sanitizers. With MSRL_ONE_TEST_PROGRAM all UNIT tests are one program,
# msrl_add_all_test, in which cases that match a pattern of TOGETHER share a process.
function(msrl_add_test name)
  cmake_parse_arguments(ARG "UNIT" "" "SOURCES;LINK;STATISTICS;TOGETHER" ${ARGN})
  if(ARG_UNIT AND MSRL_ONE_TEST_PROGRAM)
    add_library(${name} OBJECT ${ARG_SOURCES})
    set_property(GLOBAL APPEND PROPERTY MSRL_UNIT_TESTS ${name})
    set_property(GLOBAL APPEND PROPERTY MSRL_UNIT_STATISTICS ${ARG_STATISTICS})
    set_property(GLOBAL APPEND PROPERTY MSRL_UNIT_TOGETHER ${ARG_TOGETHER})
  else()
    add_executable(${name} ${ARG_SOURCES})
    string(REPLACE ";" ":" statistics "${ARG_STATISTICS}")
    if(statistics)
      gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 TEST_FILTER ${statistics}
                           PROPERTIES TIMEOUT 300 LABELS statistics)
    endif()
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 TEST_FILTER "-${statistics}"
                         PROPERTIES TIMEOUT 300)
  endif()
  target_link_libraries(${name} PRIVATE msrl_flags msrl_testing ${ARG_LINK})
  # what is tested keeps its optimisation; the tests themselves compile faster with less
  target_compile_options(${name} PRIVATE ${MSRL_QUICK})
  if(NOT "${ARG_LINK}" MATCHES "torch")  # whose flags differ
    msrl_use_headers(${name} test)
  endif()
endfunction()

# Of the many copies of Eigen's functions the linker keeps the first. Under the sanitizers that must
# be one from a hot folder: those without optimisation are ten times slower.
function(msrl_link_hot_first target)
  if(CMAKE_BUILD_TYPE STREQUAL "Sanitize")
    get_property(hot GLOBAL PROPERTY MSRL_HOT_LIBRARIES)
    list(TRANSFORM hot REPLACE "(.+)" "$<TARGET_FILE:\\1>")
    target_link_options(${target} PRIVATE
      LINKER:--whole-archive ${hot} LINKER:--no-whole-archive)
  endif()
endfunction()

# All unit tests as one program: one link instead of one per folder, and few starts of a large
# program instead of one for each case.
function(msrl_add_all_test)
  get_property(tests GLOBAL PROPERTY MSRL_UNIT_TESTS)
  get_property(statistics GLOBAL PROPERTY MSRL_UNIT_STATISTICS)
  string(REPLACE ";" ":" statistics "${statistics}")
  get_property(together GLOBAL PROPERTY MSRL_UNIT_TOGETHER)
  string(REPLACE ";" ":" together "${together}")
  set(source ${PROJECT_BINARY_DIR}/all_test.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "")
  add_executable(all_test ${source})
  target_link_libraries(all_test PRIVATE ${tests})
  msrl_link_hot_first(all_test)
  set(parts 20)
  math(EXPR last "${parts} - 1")
  foreach(part RANGE ${last})
    add_test(NAME all_test.${part} COMMAND all_test --gtest_brief=1
             "--gtest_filter=-${statistics}:${together}")
    set_tests_properties(all_test.${part} PROPERTIES TIMEOUT 900
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${parts};GTEST_SHARD_INDEX=${part}")
  endforeach()
  add_test(NAME all_test.together COMMAND all_test --gtest_brief=1
           "--gtest_filter=${together}:-${statistics}")
  set_tests_properties(all_test.together PROPERTIES TIMEOUT 900)
  add_test(NAME all_test.statistics COMMAND all_test "--gtest_filter=${statistics}")
  set_tests_properties(all_test.statistics PROPERTIES LABELS statistics)
endfunction()
