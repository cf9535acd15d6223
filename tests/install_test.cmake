# Installs the built library to a fresh prefix, builds examples/ against it as outside projects
# would, and runs them.
set(work ${MSRL_BUILD_DIR}/install_test)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  message("${output}")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed (${result}): ${ARGN}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${MSRL_BUILD_DIR} --prefix ${work}/prefix)

function(build source binary)
  run(${CMAKE_COMMAND} -S ${source} -B ${binary} -G Ninja -DCMAKE_BUILD_TYPE=Release
      -DCMAKE_CXX_COMPILER=${MSRL_CXX} -DCMAKE_CXX_COMPILER_LAUNCHER=${MSRL_LAUNCHER}
      -DCMAKE_PREFIX_PATH=${work}/prefix)
  run(${CMAKE_COMMAND} --build ${binary})
endfunction()

build(${MSRL_SOURCE_DIR}/examples ${work}/build)
run(${work}/build/join_segments)
run(${work}/build/search_segments ${MSRL_SOURCE_DIR}/examples/trajectories.jsonl)

if(MSRL_BUILD_APPS)  # otherwise there is no msrl::cli
  build(${MSRL_SOURCE_DIR}/examples/own_env ${work}/own_env)
  run(${MSRL_SOURCE_DIR}/tests/own_env_commands ${work}/own_env/own_env ${work}/own_env_runs)
endif()
