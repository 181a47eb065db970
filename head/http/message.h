// HTTP requests and responses as values (RFC 9110, RFC 9112), and their limits.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/secret.h"

namespace troupe::head {

inline constexpr std::size_t kHttpHeadBytesMax = 16 * 1024;  // request line and headers

inline constexpr std::size_t kHttpBodyBytesMax = 1024 * 1024;

/// A request. Its body is read when its caller is known and may ask for its route.
struct HttpRequest {
  std::string method;
  std::string path;  // decoded, without the query
  std::map<std::string, std::string> query;
  Secret bearer;  // the token of `Authorization: Bearer`; empty: none was shown
  std::string accept;
  std::string last_event_id;
  bool keep_alive = true;
  std::string idempotency_key;
  std::size_t body_bytes = 0;  // bytes to come
  bool waits_to_send = false;  // `Expect: 100-continue`: the body comes when it is asked for
  std::string body;
  bool no_cache = false;  // `Cache-Control: no-cache`: the answer may not come from a cache
};

struct HttpResponse {
  unsigned status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  bool stream = false;  // in its place comes a stream (streams.h, logs/logs.h)
};

inline constexpr char kJsonType[] = "application/json";

/// `text` with U+FFFD for each byte that is no part of UTF-8: names and causes come from strangers.
std::string ValidUtf8(std::string text);

/// `{"error": {"status": 404, "message": "..."}}`.
HttpResponse ErrorResponse(unsigned status, std::string_view message);

/// The bytes of a response. For a HEAD request the body is left out and its length is told.
std::string FormatResponse(const HttpResponse& response, bool head_only, bool keep_alive);

}  // namespace troupe::head
