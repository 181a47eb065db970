#include "worker/blob_fetch.h"

#include <unistd.h>

#include <utility>

#include "runtime/async/deadline.h"
#include "runtime/net/open_session.h"

namespace troupe::worker {
namespace {

// For one chunk, on a slow link.
constexpr Duration kChunkLimit = std::chrono::seconds(30);

}  // namespace

BlobFetcher::BlobFetcher(async::Executor executor, const Clock& clock, BlobStore& blobs,
                         FetchIdentity identity,
                         std::function<const net::Credentials&()> credentials)
    : executor_(executor),
      clock_(clock),
      blobs_(blobs),
      identity_(std::move(identity)),
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
  const bool local =
      !identity_.force_tcp && !blob.unix_path.empty() && blob.boot_id == identity_.boot_id;
  if (!local && blob.host.empty()) {
    co_return MakeError(ErrorCode::kNotFound,
                        "it is not on node " + identity_.node_name + ", and no holder is named");
  }
  net::Address address;
  if (local) {
    address.path = blob.unix_path;
  } else {
    address.host = blob.host;
    address.port = blob.port;
  }
  net::OpenOptions options(address);
  options.credentials = credentials_();
  options.expected.role = wire::Role::kWorker;
  options.hello.role = wire::Role::kWorker;
  options.hello.name = identity_.node_name;
  options.hello.boot_id = identity_.boot_id;
  options.hello.pid = getpid();
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
                                                  "a piece of a blob from " + address.Text()));
    const auto* chunk = std::get_if<wire::BlobChunk>(&reply.body);
    if (chunk == nullptr || !chunk->found) {
      co_return MakeError(ErrorCode::kNotFound, address.Text() + " does not have it any more");
    }
    TROUPE_CO_ASSIGN(const bool complete, blobs_.Put(uploader, blob.sha256, offset,
                                                     chunk->size_bytes, reply.attachment));
    offset += reply.attachment.size();
    if (complete) break;
    if (reply.attachment.empty()) {
      co_return MakeError(ErrorCode::kInvalid, address.Text() + " sent an empty piece");
    }
  }
  session.connection->Close(MakeError(ErrorCode::kConnection, "the blob has arrived"));
  co_return absl::OkStatus();
}

}  // namespace troupe::worker
