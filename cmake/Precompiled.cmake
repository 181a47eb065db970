# Precompiled headers of the inner loop's build. Nearly every file reads abseil's StatusOr and
# StrCat, and half of the standard library by way of them: two of three seconds of a small file.
# Their texts are read once here, for the libraries and for the tests (which are compiled for
# executables, and read GoogleTest too). Headers of the project are not among them: a change would
# compile everything. Whether a header includes what it needs is asked by the lint headers_alone.
option(TROUPE_PRECOMPILE "Precompile the headers of the standard library and abseil (g++)" OFF)
set(troupe_precompiled_headers <algorithm> <array> <chrono> <cstdint> <deque> <functional> <map>
  <memory> <optional> <set> <span> <string> <string_view> <unordered_map> <utility> <variant>
  <vector> <absl/status/status.h> <absl/status/statusor.h> <absl/strings/str_cat.h>)

if(TROUPE_PRECOMPILE)
  # ccache does not keep what reads a precompiled header unless told that macros and times are none
  # of its concern: none of these headers looks at either.
  if(TROUPE_CCACHE)
    foreach(language C CXX)
      set(CMAKE_${language}_COMPILER_LAUNCHER /usr/bin/env
        CCACHE_SLOPPINESS=pch_defines,time_macros ${TROUPE_CCACHE})
    endforeach()
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  endif()
  # g++ 12 finds bounds overstepped inside std::string where its text was precompiled, and not where
  # it was read.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds>)
  file(WRITE ${CMAKE_BINARY_DIR}/generated/precompiled.cc "int main() {}\n")
endif()

# troupe_precompiled(KIND TARGETS...): these read what is precompiled for KIND, `library` or `test`.
function(troupe_precompiled KIND)
  if(NOT TROUPE_PRECOMPILE)
    return()
  endif()
  set(precompiled troupe_precompiled_${KIND})
  if(NOT TARGET ${precompiled})
    if(KIND STREQUAL "test")
      add_executable(${precompiled} EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/generated/precompiled.cc)
      target_link_libraries(${precompiled} PRIVATE GTest::gtest)
      target_precompile_headers(${precompiled} PRIVATE ${troupe_precompiled_headers}
        <gtest/gtest.h>)
    else()
      add_library(${precompiled} OBJECT ${CMAKE_BINARY_DIR}/generated/precompiled.cc)
      target_precompile_headers(${precompiled} PRIVATE ${troupe_precompiled_headers})
    endif()
    target_link_libraries(${precompiled} PRIVATE troupe_absl_headers)
  endif()
  foreach(target ${ARGN})
    target_precompile_headers(${target} REUSE_FROM ${precompiled})
  endforeach()
endfunction()
