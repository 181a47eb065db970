// A JSON document as the body of a response.
#pragma once

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "head/http/message.h"

namespace troupe::head {

/// The document in one line; bytes that are no UTF-8 are replaced.
inline HttpResponse JsonResponse(const boost::json::value& document, unsigned status = 200) {
  HttpResponse response;
  response.status = status;
  response.type = kJsonType;
  response.body = ValidUtf8(boost::json::serialize(document)) + "\n";
  return response;
}

}  // namespace troupe::head
