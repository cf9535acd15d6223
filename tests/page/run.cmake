# Runs page_test.mjs; ctest calls this. The packages of the test are fetched here, not by the build:
# twenty times the size of what the page itself needs.
cmake_policy(VERSION 3.25)
if(NOT PAGE)
  message(STATUS "report_page skipped: this build has no page; install node 18 or newer and npm, "
                 "then configure again")
  return()
endif()
find_program(CHROMIUM NAMES chromium chromium-browser google-chrome)
if(NOT CHROMIUM)
  message(STATUS "report_page skipped: no chromium on the path (Debian: chromium)")
  return()
endif()
set(packages ${TEST}/package.json ${TEST}/package-lock.json)
foreach(package IN LISTS packages)
  if(${package} IS_NEWER_THAN ${FOLDER}/modules/fetched)
    set(fetch ON)
  endif()
endforeach()
if(fetch)
  execute_process(COMMAND ${CMAKE_COMMAND} -DNPM=${NPM} "-DFILES=${packages}"
                          -DFOLDER=${FOLDER}/modules -P ${SOURCE}/fetch.cmake
                  COMMAND_ERROR_IS_FATAL ANY)
endif()
execute_process(
  COMMAND ${NODE} ${TEST}/page_test.mjs --page ${PAGE} --source ${SOURCE}
          --page-modules ${PAGE_MODULES} --test-modules ${FOLDER}/modules
          --chromium ${CHROMIUM} --out ${FOLDER}/screens
  COMMAND_ERROR_IS_FATAL ANY)
