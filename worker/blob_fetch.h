// Gets a blob from the worker that holds it.
//
// View: one node; suspends on the worker's loop until the blob is in the store, or an error:
// kNotFound (the holder no longer has it), kConnection (it cannot be reached). What has come is
// hashed as it comes; a wrong byte is kInvalid. The same blob is fetched once at a time: see
// BlobFetcher.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/async/scope.h"
#include "runtime/base/time.h"
#include "runtime/net/credentials.h"
#include "runtime/wire/messages.h"
#include "worker/blob_store.h"
#include "worker/peer_dial.h"

namespace troupe::worker {

class BlobFetcher {
 public:
  using OnDone = std::function<void(const StatusOr<std::string>& path)>;

  /// References must outlive the fetcher. `credentials` is asked at each fetch: they are renewed.
  BlobFetcher(async::Executor executor, const Clock& clock, BlobStore& blobs, PeerSelf self,
              std::function<const net::Credentials&()> credentials);

  /// Calls `done` with the blob's path, at once when it is here. Pins it: Unpin is the caller's.
  void Fetch(const wire::BlobRef& blob, OnDone done);
  void Stop() { scope_.Cancel(); }

 private:
  async::Task<void> Run(wire::BlobRef blob);
  async::Task<Status> Transfer(wire::BlobRef blob, std::uint64_t uploader);

  const async::Executor executor_;
  const Clock& clock_;
  BlobStore& blobs_;
  const PeerSelf self_;
  const std::function<const net::Credentials&()> credentials_;
  std::map<std::string, std::vector<OnDone>> waiting_;  // by digest
  std::uint64_t next_uploader_ = 1;
  async::Scope scope_;
};

}  // namespace troupe::worker
