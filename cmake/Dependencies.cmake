# Third-party libraries. Boost, Cap'n Proto and SQLite are linked statically into the
# executables, so that a wheel runs on a distribution that has none of them.
find_package(Threads REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
find_package(Boost 1.81 REQUIRED)  # headers only: asio and beast
find_package(absl REQUIRED)
find_package(CapnProto REQUIRED)
find_package(Python 3.11 COMPONENTS Interpreter REQUIRED)
find_library(TROUPE_SQLITE_STATIC libsqlite3.a REQUIRED)
find_library(TROUPE_CAPNP_STATIC libcapnp.a REQUIRED)
find_library(TROUPE_KJ_STATIC libkj.a REQUIRED)
find_library(TROUPE_CAPNP_SHARED libcapnp.so REQUIRED)
find_library(TROUPE_KJ_SHARED libkj.so REQUIRED)

add_library(troupe_capnp_static INTERFACE)
target_link_libraries(troupe_capnp_static INTERFACE ${TROUPE_CAPNP_STATIC} ${TROUPE_KJ_STATIC} Threads::Threads)
# Debian's libkj.a holds local-exec TLS, so a shared object cannot take it in: the extension links the
# shared libraries and ships them beside itself.
add_library(troupe_capnp_shared INTERFACE)
target_link_libraries(troupe_capnp_shared INTERFACE ${TROUPE_CAPNP_SHARED} ${TROUPE_KJ_SHARED})

add_library(troupe_sqlite INTERFACE)
target_link_libraries(troupe_sqlite INTERFACE ${TROUPE_SQLITE_STATIC} ${CMAKE_DL_LIBS} m Threads::Threads)

add_library(troupe_asio INTERFACE)
target_compile_definitions(troupe_asio INTERFACE BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_SEPARATE_COMPILATION)
target_link_libraries(troupe_asio INTERFACE Boost::headers Threads::Threads)
