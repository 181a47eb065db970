#include "head/http/message.h"

#include <algorithm>

#include "runtime/base/log.h"

namespace troupe::head {
namespace {

std::string_view ReasonOf(unsigned status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "Error";
  }
}

/// How many bytes at `at` are one character; 0: they are none.
std::size_t CharacterBytes(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xC2 && first < 0xE0   ? 2
                           : first >= 0xE0 && first < 0xF0 ? 3
                           : first >= 0xF0 && first < 0xF5 ? 4
                                                           : 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool surrogate = first == 0xED && byte(1) >= 0xA0;
  const bool beyond = first == 0xF4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : size;
}

}  // namespace

std::string ValidUtf8(std::string text) {
  std::string valid;
  std::size_t good = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = CharacterBytes(text, at);
    if (size == 0) {
      valid += text.substr(good, at - good) + "\xEF\xBF\xBD";
      good = at + 1;
    }
    at += std::max<std::size_t>(size, 1);
  }
  if (good == 0) return text;
  return valid + text.substr(good);
}

HttpResponse ErrorResponse(unsigned status, std::string_view message) {
  HttpResponse response;
  response.status = status;
  response.type = kJsonType;
  response.body = "{\"error\": {\"status\": " + std::to_string(status) + ", \"message\": \"" +
                  JsonEscape(message) + "\"}}\n";
  return response;
}

std::string FormatResponse(const HttpResponse& response, bool head_only, bool keep_alive) {
  std::string text = "HTTP/1.1 " + std::to_string(response.status) + " ";
  text += ReasonOf(response.status);
  text += "\r\nServer: troupe\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff";
  text += "\r\nContent-Type: " + response.type;
  text += "\r\nContent-Length: " + std::to_string(response.body.size());
  for (const auto& [name, value] : response.headers) text += "\r\n" + name + ": " + value;
  text += keep_alive ? "\r\nConnection: keep-alive" : "\r\nConnection: close";
  text += "\r\n\r\n";
  if (!head_only) text += response.body;
  return text;
}

}  // namespace troupe::head
