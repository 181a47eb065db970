#include "actors/net/call_stream.h"

#include <string.h>

namespace troupe::actors {

std::string CallStream::WhyEnded(const IoResult& ended) const {
  if (tls_ != nullptr) return tls_->WhyEnded(ended.error);
  return ended.error == 0 ? "the other side closed it" : strerror(ended.error);
}

}  // namespace troupe::actors
