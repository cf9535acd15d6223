# Bundles the page of `msrl report` into ${CMAKE_CURRENT_BINARY_DIR}/report_page.html (target
# msrl_report_page). Include it from msrl/report. Sets MSRL_HAVE_PAGE and MSRL_PAGE_FILE.
#
# npm fetches two packages (uplot, esbuild) once per build tree, as package-lock.json pins them;
# after that nothing goes to the network until that file changes. Nothing is written to the source
# tree.
option(MSRL_BUILD_PAGE "Bundle the HTML page of msrl report (needs node and npm)" ON)

set(MSRL_PAGE_DIR ${CMAKE_CURRENT_LIST_DIR})
set(MSRL_PAGE_MODULES ${CMAKE_CURRENT_BINARY_DIR}/page)
set(MSRL_PAGE_FILE ${CMAKE_CURRENT_BINARY_DIR}/report_page.html)
set(MSRL_HAVE_PAGE OFF)

if(MSRL_BUILD_PAGE)
  find_program(MSRL_NODE NAMES node nodejs)
  find_program(MSRL_NPM npm)
  set(msrl_node_version 0)
  if(MSRL_NODE)
    execute_process(COMMAND ${MSRL_NODE} --version OUTPUT_VARIABLE msrl_node_version
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    string(REGEX REPLACE "^v" "" msrl_node_version "${msrl_node_version}")
  endif()
  if(NOT MSRL_NODE OR NOT MSRL_NPM)
    message(STATUS "msrl report has no --html: node and npm are missing (Debian: nodejs npm)")
  elseif(msrl_node_version VERSION_LESS 18)
    message(STATUS "msrl report has no --html: node is ${msrl_node_version}, not 18 or newer")
  else()
    set(MSRL_HAVE_PAGE ON)
  endif()
else()
  message(STATUS "msrl report has no --html: MSRL_BUILD_PAGE is off")
endif()

if(MSRL_HAVE_PAGE)
  set(msrl_page_packages ${MSRL_PAGE_DIR}/package.json ${MSRL_PAGE_DIR}/package-lock.json)
  add_custom_command(
    OUTPUT ${MSRL_PAGE_MODULES}/fetched
    COMMAND ${CMAKE_COMMAND} -DNPM=${MSRL_NPM} "-DFILES=${msrl_page_packages}"
            -DFOLDER=${MSRL_PAGE_MODULES} -P ${MSRL_PAGE_DIR}/fetch.cmake
    DEPENDS ${msrl_page_packages} ${MSRL_PAGE_DIR}/fetch.cmake
    COMMENT "Fetching the packages of the report page" VERBATIM)
  file(GLOB msrl_page_sources CONFIGURE_DEPENDS ${MSRL_PAGE_DIR}/src/*.ts
       ${MSRL_PAGE_DIR}/src/*.css)
  add_custom_command(
    OUTPUT ${MSRL_PAGE_FILE}
    COMMAND ${MSRL_NODE} ${MSRL_PAGE_DIR}/build.mjs --modules ${MSRL_PAGE_MODULES}
            --out ${MSRL_PAGE_FILE}
    DEPENDS ${MSRL_PAGE_MODULES}/fetched ${msrl_page_sources} ${MSRL_PAGE_DIR}/build.mjs
            ${MSRL_PAGE_DIR}/index.html ${MSRL_PAGE_DIR}/tsconfig.json
    COMMENT "Bundling the report page" VERBATIM)
  add_custom_target(msrl_report_page DEPENDS ${MSRL_PAGE_FILE})
  set_target_properties(msrl_report_page PROPERTIES
    MSRL_FILE ${MSRL_PAGE_FILE} MSRL_MODULES ${MSRL_PAGE_MODULES} MSRL_SOURCE ${MSRL_PAGE_DIR})
endif()
