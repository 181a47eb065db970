# Third-party libraries. Boost, Cap'n Proto, abseil and SQLite are linked statically into the
# executables, so that a wheel runs on a distribution that has none of them, or others. OpenSSL 3
# stays shared: every distribution with the wheel's glibc has it, and its security fixes reach what
# is installed. tests/package/needed.py holds what a product may need at run time.
find_package(Threads REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
find_package(Boost 1.81 REQUIRED)  # headers only: asio, beast, unordered
find_package(absl REQUIRED)
find_package(CapnProto REQUIRED)
find_package(Python 3.11 COMPONENTS Interpreter REQUIRED)
find_library(TROUPE_SQLITE_STATIC libsqlite3.a REQUIRED)
find_library(TROUPE_CAPNP_STATIC libcapnp.a REQUIRED)
find_library(TROUPE_KJ_STATIC libkj.a REQUIRED)
find_library(TROUPE_CAPNP_SHARED libcapnp.so REQUIRED)
find_library(TROUPE_KJ_SHARED libkj.so REQUIRED)

# Libraries of this project name neither kind of Cap'n Proto and abseil: what links them into a
# product chooses. Programs take the archives. The extension cannot: Debian's abseil archives are no
# position independent code and libkj.a holds local-exec TLS; it links the shared ones, which the
# wheel carries.
include(AbseilStatic)
add_library(troupe_static INTERFACE)
target_link_libraries(troupe_static INTERFACE ${TROUPE_CAPNP_STATIC} ${TROUPE_KJ_STATIC}
                      absl_static::statusor absl_static::status absl_static::str_format
                      absl_static::cord Threads::Threads)
add_library(troupe_shared INTERFACE)
target_link_libraries(troupe_shared INTERFACE ${TROUPE_CAPNP_SHARED} ${TROUPE_KJ_SHARED}
                      absl::statusor absl::status absl::str_format absl::cord)
add_library(troupe_absl_headers INTERFACE)
get_target_property(absl_headers absl::config INTERFACE_INCLUDE_DIRECTORIES)
target_include_directories(troupe_absl_headers SYSTEM INTERFACE ${absl_headers})

add_library(troupe_sqlite INTERFACE)
target_link_libraries(troupe_sqlite INTERFACE ${TROUPE_SQLITE_STATIC} ${CMAKE_DL_LIBS} m
  Threads::Threads)

add_library(troupe_asio INTERFACE)
target_compile_definitions(troupe_asio INTERFACE BOOST_ASIO_NO_DEPRECATED
  BOOST_ASIO_SEPARATE_COMPILATION)
target_link_libraries(troupe_asio INTERFACE Boost::headers Threads::Threads)
