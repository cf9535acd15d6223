# MuJoCo::MuJoCo. Debian's own CMake package asks for targets that it does not ship.
include(FindPackageHandleStandardArgs)
find_path(MuJoCo_INCLUDE_DIR mujoco/mujoco.h)
find_library(MuJoCo_LIBRARY mujoco)
find_package_handle_standard_args(MuJoCo REQUIRED_VARS MuJoCo_LIBRARY MuJoCo_INCLUDE_DIR)
if(MuJoCo_FOUND AND NOT TARGET MuJoCo::MuJoCo)
  add_library(MuJoCo::MuJoCo UNKNOWN IMPORTED)
  set_target_properties(MuJoCo::MuJoCo PROPERTIES IMPORTED_LOCATION ${MuJoCo_LIBRARY}
                        INTERFACE_INCLUDE_DIRECTORIES ${MuJoCo_INCLUDE_DIR})
endif()
mark_as_advanced(MuJoCo_INCLUDE_DIR MuJoCo_LIBRARY)
