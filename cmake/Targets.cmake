# troupe_library(NAME SOURCES a.cc b.cc DEPS x y): a static library of one folder.
function(troupe_library NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(ARG_SOURCES)
    add_library(${NAME} STATIC ${ARG_SOURCES})
    target_link_libraries(${NAME} PUBLIC ${ARG_DEPS})
    troupe_precompiled(library ${NAME})
  else()
    add_library(${NAME} INTERFACE)
    target_link_libraries(${NAME} INTERFACE ${ARG_DEPS})
  endif()
endfunction()

# troupe_faults(NAME...): these targets' places of faults by name are compiled in
# (runtime/base/fault.h).
function(troupe_faults)
  if(TROUPE_FAULTS)
    foreach(NAME ${ARGN})
      target_compile_definitions(${NAME} PRIVATE TROUPE_WITH_FAULTS)
    endforeach()
  endif()
endfunction()

# troupe_program(NAME SOURCES main.cc DEPS x): an executable, its libraries linked statically.
function(troupe_program NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${NAME} ${ARG_SOURCES})
  target_link_libraries(${NAME} PRIVATE ${ARG_DEPS} troupe_static)
  set_target_properties(${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  if(NAME MATCHES "^troupe-")  # what the wheel carries; the package looks for it in troupe/bin
    install(TARGETS ${NAME} RUNTIME DESTINATION troupe/bin COMPONENT python)
  endif()
endfunction()

# troupe_test(NAME SOURCES a_test.cc DEPS x LABELS unit): one GoogleTest program, one ctest case per
# TEST.
function(troupe_test NAME)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${NAME} ${ARG_SOURCES})
  target_link_libraries(${NAME} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main troupe_static)
  troupe_precompiled(test ${NAME})
  gtest_discover_tests(${NAME} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
                       DISCOVERY_MODE PRE_TEST)
endfunction()
