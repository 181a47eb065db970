# Gives every abseil target absl::x a twin absl_static::x that names the archive beside the shared
# library. Debian ships both kinds and its CMake package knows the shared ones alone, of which no
# two distributions have the same version.
function(troupe_absl_twin TARGET)
  string(REPLACE "absl::" "absl_static::" twin ${TARGET})
  get_target_property(type ${TARGET} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    add_library(${twin} INTERFACE IMPORTED GLOBAL)
  else()
    add_library(${twin} STATIC IMPORTED GLOBAL)
    get_target_property(configuration ${TARGET} IMPORTED_CONFIGURATIONS)
    list(GET configuration 0 configuration)
    get_target_property(library ${TARGET} IMPORTED_LOCATION_${configuration})
    string(REGEX REPLACE "[.]so[.0-9]*$" ".a" archive ${library})
    if(NOT EXISTS ${archive})
      message(FATAL_ERROR
        "${TARGET} is the shared ${library} and there is no ${archive}: programs would run on this "
        "distribution alone. Install abseil's static libraries (Debian: libabsl-dev).")
    endif()
    set_target_properties(${twin} PROPERTIES IMPORTED_LOCATION ${archive})
  endif()
  foreach(property INTERFACE_LINK_LIBRARIES INTERFACE_INCLUDE_DIRECTORIES
    INTERFACE_COMPILE_DEFINITIONS)
    get_target_property(value ${TARGET} ${property})
    if(value)
      string(REPLACE "absl::" "absl_static::" value "${value}")
      set_target_properties(${twin} PROPERTIES ${property} "${value}")
    endif()
  endforeach()
endfunction()

get_property(imported_targets DIRECTORY PROPERTY IMPORTED_TARGETS)
foreach(target ${imported_targets})
  if(target MATCHES "^absl::")
    troupe_absl_twin(${target})
  endif()
endforeach()
