#include "worker/blob_fetch.h"

#include <utility>

#include "runtime/async/deadline.h"
#include "runtime/net/open_session.h"

namespace troupe::worker {
namespace {

// For one chunk, on a slow link.
constexpr Duration kChunkLimit = std::chrono::seconds(30);

}  // namespace

BlobFetcher::BlobFetcher(async::Executor executor, const Clock& clock, BlobStore& blobs,
                         PeerSelf self, std::function<const net::Credentials&()> credentials)
    : executor_(executor),
      clock_(clock),
      blobs_(blobs),
      self_(std::move(self)),
      credentials_(std::move(credentials)),
      scope_(executor, "blobs") {}

void BlobFetcher::Fetch(const wire::BlobRef& blob, OnDone done) {
  if (blobs_.Has(blob.sha256)) {
    blobs_.Pin(blob.sha256);
    done(blobs_.PathOf(blob.sha256));
    return;
  }
  auto& waiting = waiting_[blob.sha256];
  waiting.push_back(std::move(done));
  if (waiting.size() == 1) scope_.Spawn("fetch", Run(blob));
}

async::Task<void> BlobFetcher::Run(wire::BlobRef blob) {
  const std::uint64_t uploader = next_uploader_++;
  const Status status = co_await Transfer(blob, uploader);
  blobs_.AbandonUploads(uploader);
  const auto found = waiting_.find(blob.sha256);
  const std::vector<OnDone> waiting = std::move(found->second);
  waiting_.erase(found);
  for (const OnDone& done : waiting) {
    if (status.ok()) {
      blobs_.Pin(blob.sha256);
      done(blobs_.PathOf(blob.sha256));
    } else {
      done(status);
    }
  }
}

async::Task<Status> BlobFetcher::Transfer(wire::BlobRef blob, std::uint64_t uploader) {
  const PeerPlace place{blob.unix_path, blob.boot_id, blob.host, blob.port};
  if (!IsLocal(self_, place) && blob.host.empty()) {
    co_return MakeError(ErrorCode::kNotFound,
                        "it is not on node " + self_.name + ", and no holder is named");
  }
  net::OpenOptions options = DialOptions(self_, place, credentials_());
  const std::string where = options.address.Text();
  TROUPE_CO_ASSIGN(net::OpenedSession session,
                   co_await net::OpenSession(std::move(options), clock_));
  std::uint64_t offset = 0;
  for (std::uint64_t id = 1;; ++id) {
    wire::GetBlob get;
    get.sha256 = blob.sha256;
    get.offset = offset;
    wire::Message request;
    request.id = id;
    request.body = std::move(get);
    TROUPE_CO_TRY(session.connection->Send(request));
    auto receiving = session.connection->Receive();
    TROUPE_CO_ASSIGN(const wire::Message reply,
                     co_await async::WithDeadline(std::move(receiving), kChunkLimit,
                                                  "a piece of a blob from " + where));
    const auto* chunk = wire::GetIf<wire::BlobChunk>(&reply.body);
    if (chunk == nullptr || !chunk->found) {
      co_return MakeError(ErrorCode::kNotFound, where + " does not have it any more");
    }
    TROUPE_CO_ASSIGN(const bool complete, blobs_.Put(uploader, blob.sha256, offset,
                                                     chunk->size_bytes, reply.attachment));
    offset += reply.attachment.size();
    if (complete) break;
    if (reply.attachment.empty()) {
      co_return MakeError(ErrorCode::kInvalid, where + " sent an empty piece");
    }
  }
  session.connection->Close(MakeError(ErrorCode::kConnection, "the blob has arrived"));
  co_return absl::OkStatus();
}

}  // namespace troupe::worker
