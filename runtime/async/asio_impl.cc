// The one place that compiles Asio itself (BOOST_ASIO_SEPARATE_COMPILATION): everything else sees
// declarations only, which halves the build of each file that uses it.
#include <boost/asio/impl/src.hpp>
