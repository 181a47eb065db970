# Compiler settings every target shares: standard, warnings, hardening, sanitizers, ccache, linker.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Dev CACHE STRING "" FORCE)
endif()
# project() has made empty cache entries for a build type it does not know. -O1 builds as quickly as
# -O0 here (less code to write out and to link), and what it builds runs faster.
foreach(language C CXX)
  if(NOT CMAKE_${language}_FLAGS_DEV)
    set(CMAKE_${language}_FLAGS_DEV "-O1 -g1" CACHE STRING
      "Flags of the inner loop: quick to build, assertions on" FORCE)
  endif()
endforeach()
# Assertions stay on in a release: a broken invariant stops the component, not the cluster.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1" CACHE STRING "" FORCE)

find_program(TROUPE_CCACHE ccache)
if(TROUPE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${TROUPE_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TROUPE_CCACHE})
endif()
find_program(TROUPE_MOLD mold)
if(TROUPE_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers
  -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-fcoroutines)
  # g++ 12 inlines one of the pair by which Asio allocates coroutine frames, and not the other.
  add_compile_options(-Wno-mismatched-new-delete)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options(-Wthread-safety -Werror=thread-safety)  # what runtime/base/mutex.h promises
endif()
if(TROUPE_FUZZ)
  # what is fuzzed tells which of its branches an input reached
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(TROUPE_SANITIZE)
  add_compile_options(-fsanitize=${TROUPE_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TROUPE_SANITIZE})
else()
  add_compile_options(-fstack-protector-strong -D_GLIBCXX_ASSERTIONS)
  # separate-code: segments begin at pages of the file. libunwind, by which `troupe stack` reads
  # native frames, finds a mapping's segment by the page it begins at, and unwinds by guesses where
  # mold has put the code into the middle of one.
  add_link_options(-Wl,-z,relro,-z,now,-z,separate-code)
  if(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
    add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fcf-protection)
  endif()
endif()
include_directories(${CMAKE_SOURCE_DIR})
