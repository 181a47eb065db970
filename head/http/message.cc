#include "head/http/message.h"

#include "runtime/base/log.h"

namespace troupe::head {
namespace {

std::string_view ReasonOf(unsigned status) {
  switch (status) {
    case 200:
      return "OK";
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

}  // namespace

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
