# cmake --install, and what find_package(msrl [COMPONENTS folder ...]) needs: every folder is a
# component with an export file of its own, and msrlConfig.cmake knows what each stands on.

include(CMakePackageConfigHelpers)

set(msrl_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/msrl)
get_property(folders GLOBAL PROPERTY MSRL_INSTALLED_FOLDERS)
set(needs "")
foreach(folder IN LISTS folders)
  install(TARGETS msrl_${folder} EXPORT msrl_${folder})
  install(EXPORT msrl_${folder} NAMESPACE msrl:: DESTINATION ${msrl_cmake_dir})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/msrl/${folder}
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/msrl FILES_MATCHING PATTERN "*.h")
  get_property(lower GLOBAL PROPERTY MSRL_FOLDERS_OF_${folder})
  get_property(packages GLOBAL PROPERTY MSRL_PACKAGES_OF_${folder})
  string(APPEND needs "set(msrl_folders_of_${folder} \"${lower}\")\n"
                      "set(msrl_packages_of_${folder} \"${packages}\")\n")
endforeach()
if(TARGET msrl)
  install(TARGETS msrl)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs DESTINATION ${CMAKE_INSTALL_DATADIR}/msrl)
endif()

configure_package_config_file(cmake/msrlConfig.cmake.in ${PROJECT_BINARY_DIR}/msrlConfig.cmake
                              INSTALL_DESTINATION ${msrl_cmake_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/msrlConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/msrlConfig.cmake ${PROJECT_BINARY_DIR}/msrlConfigVersion.cmake
              cmake/FindHDF5C.cmake cmake/FindMuJoCo.cmake
        DESTINATION ${msrl_cmake_dir})

# ---- cpack -G DEB: one package with the command and the library ----
if(PROJECT_IS_TOP_LEVEL AND TARGET msrl)
  set(CPACK_GENERATOR DEB)
  set(CPACK_PACKAGE_NAME msrl)
  set(CPACK_PACKAGE_VENDOR msrl)
  set(CPACK_PACKAGE_CONTACT "msrl maintainers <maintainers@msrl.invalid>")
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
  set(CPACK_STRIP_FILES ON)
  # the Python extension is a wheel's
  set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};msrl;Unspecified;/")
  set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SECTION science)
  set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
      "Matrix-Space Reinforcement Learning: command line and C++ library")
  # dpkg-shlibdeps finds what the program is linked with. Films and pictures of robots need programs
  # and libraries that are looked for when they are wanted; the C++ library needs headers.
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "ffmpeg, libosmesa6")
  set(CPACK_DEBIAN_PACKAGE_SUGGESTS
      "cmake, g++, libeigen3-dev, libfmt-dev, libhdf5-dev, libmujoco-dev, libonnx-dev, libpng-dev")
  include(CPack)
endif()
