# cmake -DNPM=npm -DFILES="package.json;package-lock.json" -DFOLDER=DIR -P fetch.cmake
# Installs exactly the locked packages into DIR/node_modules and touches DIR/fetched.
# No script of a package is run.
file(MAKE_DIRECTORY ${FOLDER})
file(COPY ${FILES} DESTINATION ${FOLDER})
execute_process(
  COMMAND ${NPM} ci --ignore-scripts --no-audit --no-fund --prefer-offline --loglevel=error
  WORKING_DIRECTORY ${FOLDER} RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(failed)
  message(FATAL_ERROR "${output}\nmsrl: npm could not fetch the packages of the report page. "
                      "Without network: build with -DMSRL_BUILD_PAGE=OFF, all but msrl report --html works")
endif()
file(TOUCH ${FOLDER}/fetched)
