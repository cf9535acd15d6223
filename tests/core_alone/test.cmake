# msrl::core needs Eigen only: used from the whole installed library, and built alone, while CMake
# may find none of the other packages.
set(work ${MSRL_BUILD_DIR}/core_alone)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  message("${output}")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed (${result}): ${ARGN}")
  endif()
endfunction()

set(options -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER=${MSRL_CXX}
            -DCMAKE_CXX_COMPILER_LAUNCHER=${MSRL_LAUNCHER})
foreach(package CLI11 fmt HDF5C MuJoCo nlohmann_json PNG Threads Torch ZLIB)
  list(APPEND options -DCMAKE_DISABLE_FIND_PACKAGE_${package}=ON)
endforeach()

function(use prefix)
  run(${CMAKE_COMMAND} -S ${MSRL_SOURCE_DIR}/tests/core_alone -B ${prefix}-user
      -DCMAKE_PREFIX_PATH=${prefix} ${options})
  run(${CMAKE_COMMAND} --build ${prefix}-user)
  run(${prefix}-user/join_segments)
endfunction()

run(${CMAKE_COMMAND} --install ${MSRL_BUILD_DIR} --prefix ${work}/whole)
use(${work}/whole)

run(${CMAKE_COMMAND} -S ${MSRL_SOURCE_DIR} -B ${work}/build -DMSRL_CORE_ONLY=ON ${options})
run(${CMAKE_COMMAND} --build ${work}/build)
run(${CMAKE_COMMAND} --install ${work}/build --prefix ${work}/core)
use(${work}/core)

# what is not there is named
execute_process(COMMAND ${CMAKE_COMMAND} -S ${MSRL_SOURCE_DIR}/examples -B ${work}/examples
                        -DCMAKE_PREFIX_PATH=${work}/core ${options}
                RESULT_VARIABLE result ERROR_VARIABLE output)
if(result EQUAL 0 OR NOT output MATCHES "datasets")
  message(FATAL_ERROR "examples need more than core, but: ${output}")
endif()
