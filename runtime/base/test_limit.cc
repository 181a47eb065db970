#include "runtime/base/test_limit.h"

#ifdef TROUPE_WITH_FAULTS

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace troupe {

Duration TestLimit(std::string_view name, Duration usual) {
  const char* given = std::getenv("TROUPE_TEST_LIMITS");
  const std::string text = given == nullptr ? "" : given;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string each = text.substr(begin, end - begin);
    const std::size_t equals = each.find('=');
    char* rest = nullptr;
    const double seconds =
        equals == std::string::npos ? 0 : std::strtod(each.c_str() + equals + 1, &rest);
    if (seconds <= 0 || *rest != '\0') {
      std::fprintf(stderr, "TROUPE_TEST_LIMITS: '%s' is not of the form name=seconds\n",
                   each.c_str());
      std::_Exit(2);
    }
    if (each.compare(0, equals, name) == 0) {
      return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
    }
    begin = end + 1;
  }
  return usual;
}

}  // namespace troupe

#endif  // TROUPE_WITH_FAULTS
