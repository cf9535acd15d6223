# cmake --install, and what find_package(msrl) needs.

include(CMakePackageConfigHelpers)

get_property(folders GLOBAL PROPERTY MSRL_INSTALLED_FOLDERS)
foreach(folder IN LISTS folders)
  install(TARGETS msrl_${folder} EXPORT msrlTargets)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/msrl/${folder}
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/msrl FILES_MATCHING PATTERN "*.h")
endforeach()
if(TARGET msrl)
  install(TARGETS msrl)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs DESTINATION ${CMAKE_INSTALL_DATADIR}/msrl)
endif()

set(msrl_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/msrl)
install(EXPORT msrlTargets NAMESPACE msrl:: DESTINATION ${msrl_cmake_dir})
configure_package_config_file(cmake/msrlConfig.cmake.in ${PROJECT_BINARY_DIR}/msrlConfig.cmake
                              INSTALL_DESTINATION ${msrl_cmake_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/msrlConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/msrlConfig.cmake ${PROJECT_BINARY_DIR}/msrlConfigVersion.cmake
              cmake/FindHDF5C.cmake cmake/FindMuJoCo.cmake
        DESTINATION ${msrl_cmake_dir})
