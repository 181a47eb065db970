# find_package(troupe): the target troupe::troupe, which is libtroupe.so and its headers.
include("${CMAKE_CURRENT_LIST_DIR}/troupe-targets.cmake")
set_property(TARGET troupe::troupe APPEND PROPERTY INTERFACE_COMPILE_FEATURES cxx_std_20)
