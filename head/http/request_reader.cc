#include "head/http/request_reader.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <optional>
#include <utility>

namespace troupe::head {
namespace {

namespace http = boost::beast::http;

constexpr std::size_t kTargetBytesMax = 4096;
constexpr std::size_t kParametersMax = 32;

std::string_view View(boost::beast::string_view text) { return {text.data(), text.size()}; }

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// nullopt: not a percent-encoding, or one of a control character.
std::optional<std::string> Decoded(std::string_view text, bool plus_is_space) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    if (c == '+' && plus_is_space) c = ' ';
    if (c == '%') {
      if (text.size() - at < 3) return std::nullopt;
      const int high = HexDigit(text[at + 1]), low = HexDigit(text[at + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      at += 2;
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return std::nullopt;
    plain += c;
  }
  return plain;
}

bool ReadQuery(std::string_view query, std::map<std::string, std::string>* parameters) {
  while (!query.empty()) {
    const std::string_view one = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), one.size() + 1));
    if (one.empty()) continue;
    const std::size_t equals = std::min(one.find('='), one.size());
    std::optional<std::string> name = Decoded(one.substr(0, equals), true);
    std::optional<std::string> value = Decoded(one.substr(std::min(equals + 1, one.size())), true);
    if (!name || !value || parameters->size() == kParametersMax) return false;
    if (!parameters->emplace(*std::move(name), *std::move(value)).second) return false;
  }
  return true;
}

bool HasToken(std::string_view list, std::string_view wanted) {
  for (const auto& each : http::token_list({list.data(), list.size()})) {
    if (boost::beast::iequals(each, {wanted.data(), wanted.size()})) return true;
  }
  return false;
}

constexpr std::string_view kBearer = "Bearer ";

}  // namespace

bool ReadTarget(std::string_view target, HttpRequest* request) {
  if (target.empty() || target[0] != '/' || target.size() > kTargetBytesMax) return false;
  const std::size_t end = std::min(target.find('?'), target.size());
  std::optional<std::string> path = Decoded(target.substr(0, end), false);
  if (!path) return false;
  request->path = *std::move(path);
  return ReadQuery(target.substr(std::min(end + 1, target.size())), &request->query);
}

RequestReader::Step RequestReader::Refuse(unsigned status, std::string_view message) {
  refusal_ = ErrorResponse(status, message);
  return Step::kBad;
}

RequestReader::Step RequestReader::Feed(std::string_view bytes) {
  waiting_ += bytes;
  if (waiting_.empty()) return Step::kMore;
  http::request_parser<http::empty_body> parser;
  parser.header_limit(kHttpHeadBytesMax);
  parser.body_limit(boost::none);  // ours is told below, by its own status
  boost::system::error_code error;
  const std::size_t used = parser.put(boost::asio::buffer(waiting_), error);
  if (error == http::error::need_more) {
    if (waiting_.size() <= kHttpHeadBytesMax) return Step::kMore;
    error = http::error::header_limit;
  }
  if (error == http::error::header_limit) {
    return Refuse(431, "the request line and headers have over 16 KiB, which is the limit");
  }
  if (error || !parser.is_header_done()) {
    return Refuse(400, "this is not an HTTP/1.1 request: " + error.message());
  }
  waiting_.erase(0, used);
  const auto& head = parser.get();
  request_ = HttpRequest();
  request_.method = View(head.method_string());
  request_.keep_alive = head.keep_alive() && head.version() == 11;
  request_.accept = View(head[http::field::accept]);
  request_.last_event_id = View(head["Last-Event-ID"]);
  request_.no_cache = HasToken(View(head[http::field::cache_control]), "no-cache");
  request_.idempotency_key = View(head["Idempotency-Key"]);
  request_.waits_to_send = HasToken(View(head[http::field::expect]), "100-continue");
  if (parser.chunked() || parser.content_length().value_or(0) > kHttpBodyBytesMax)
    return Refuse(413, "a body has a Content-Length of at most 1 MiB");
  request_.body_bytes = static_cast<std::size_t>(parser.content_length().value_or(0));
  if (!ReadTarget(View(head.target()), &request_)) {
    return Refuse(400, "the request's target is malformed");
  }
  const auto shown = head.equal_range(http::field::authorization);
  if (shown.first == shown.second) return Step::kRequest;
  const std::string_view credentials = View(shown.first->value());
  if (std::next(shown.first) != shown.second || credentials.size() <= kBearer.size() ||
      !boost::beast::iequals({credentials.data(), kBearer.size()}, kBearer.data())) {
    return Refuse(400, "Authorization must be one header: Bearer TOKEN");
  }
  request_.bearer = Secret(std::string(credentials.substr(kBearer.size())));
  return Step::kRequest;
}

bool RequestReader::FeedBody(std::string_view bytes) {
  waiting_ += bytes;
  if (waiting_.size() < request_.body_bytes) return false;
  request_.body = waiting_.substr(0, request_.body_bytes);
  waiting_.erase(0, request_.body_bytes);
  return true;
}

}  // namespace troupe::head
