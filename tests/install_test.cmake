# Installs the built library to a fresh prefix, builds examples/ against it as an outside project
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
run(${CMAKE_COMMAND} -S ${MSRL_SOURCE_DIR}/examples -B ${work}/build -G Ninja
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${MSRL_CXX}
    -DCMAKE_CXX_COMPILER_LAUNCHER=${MSRL_LAUNCHER} -DCMAKE_PREFIX_PATH=${work}/prefix)
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/join_segments)
run(${work}/build/search_segments ${MSRL_SOURCE_DIR}/examples/trajectories.jsonl)
