// Cuts a byte stream into HTTP/1.1 requests and refuses what breaks a limit.
//
// Pure; one connection. Feed() takes bytes as they come. After kBad the connection must be closed:
// what follows has no meaning. Hostile bytes give kBad, never an exception.
#pragma once

#include <string>
#include <string_view>

#include "head/http/message.h"

namespace troupe::head {

class RequestReader {
 public:
  enum class Step {
    kMore,     // the head of a request is not whole yet
    kRequest,  // request() is whole
    kBad,      // refusal() says why
  };

  /// Takes bytes of the peer; "" looks at what is left of earlier ones.
  Step Feed(std::string_view bytes);
  const HttpRequest& request() const { return request_; }
  /// Takes bytes of the request's body, after kRequest; true: it is whole.
  bool FeedBody(std::string_view bytes);
  const HttpResponse& refusal() const { return refusal_; }
  /// Returns true if a part of another request has come already.
  bool begun() const { return !waiting_.empty(); }

 private:
  Step Refuse(unsigned status, std::string_view message);

  std::string waiting_;  // at most kHttpHeadBytesMax or kHttpBodyBytesMax, and one Feed
  HttpRequest request_;
  HttpResponse refusal_;
};

/// Splits "/path?name=value" and decodes it. False: it is malformed.
bool ReadTarget(std::string_view target, HttpRequest* request);

}  // namespace troupe::head
