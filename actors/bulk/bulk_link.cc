#include "actors/bulk/bulk_link.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "actors/net/now.h"

namespace troupe::actors {
namespace {

constexpr std::size_t kBulkReadBytes = 256u << 10;
// Bytes of one link, either way, before other links have their turn
constexpr std::size_t kBytesPerTurn = 1u << 20;

char* Scratch() {
  static thread_local const std::unique_ptr<char[]> scratch(new char[kBulkReadBytes]);
  return scratch.get();
}

}  // namespace

BulkLink::BulkLink(ObjectStore& store)
    : store_(store), refs_(store, [this](const store::ObjectId& name, Done done) {
        BeginPull(name, /*of_ref=*/true, std::move(done), Now());
      }) {}

// ---- what is given, what is pulled ------------------------------------------------------------

void BulkLink::GiveResult(const store::ObjectId& id, Handles handles,
                          std::vector<store::ObjectId> inside) {
  exchange_.GiveResult(id, std::move(inside));
  results_[id] = std::move(handles);
}

void BulkLink::WithdrawResult(const store::ObjectId& id) {
  exchange_.WithdrawResult(id);
  results_.erase(id);
}

void BulkLink::Pull(const store::ObjectId& id, Done done, Instant now) {
  BeginPull(id, /*of_ref=*/false, std::move(done), now);
}

void BulkLink::BeginPull(const store::ObjectId& id, bool of_ref, Done done, Instant now) {
  const PullId pull = exchange_.BeginPull(id, of_ref, RefsNow(), now);
  pulling_.emplace(pull, Pulling{std::move(done), std::nullopt});
}

void BulkLink::TakeRefs(const std::vector<store::ObjectId>& names, RemoteRefs::Then then,
                        Instant now) {
  exchange_.BeginAwaiting(RefsNow(), now);
  refs_.Take(names, std::move(then));
}

/// The pull is over, and the exchange knows it.
void BulkLink::EndPull(PullId pull, StatusOr<store::Writing> result) {
  const auto found = pulling_.find(pull);
  if (found == pulling_.end()) return;
  Pulling over = std::move(found->second);
  pulling_.erase(found);
  if (!result.ok() && over.writing) store_.pool().GiveUp(*over.writing);
  over.done(std::move(result));
}

void BulkLink::FailPulls(const Status& why, bool refs) {
  for (const PullId pull : exchange_.CancelPulls(refs)) {
    if (exchange_.into() == pull) place_ = nullptr;
    EndPull(pull, why);
  }
  if (refs)
    refs_.GiveUpAsked("the process that the ref came from does not answer: " + MessageOf(why));
}

bool BulkLink::EndCalls(const Status& why, Instant now) {
  FailPulls(why, /*refs=*/false);
  exchange_.EndCalls(now);
  results_.clear();
  return Over();
}

void BulkLink::GiveUp(const Status& why) {
  static_cast<void>(EndCalls(why, Now()));
  refs_.End(kOwnerDied, MessageOf(why));
  FailPulls(why);
  Unlink(Now());
}

// ---- time -------------------------------------------------------------------------------------

bool BulkLink::Expire(Instant now) {
  if (exchange_.GiveUpDeserted(now)) {
    results_.clear();
    EndRefs("there was no connection to it for 30 s: it ended, or its host cannot be reached");
  }
  if (!exchange_.Silent(RefsNow(), now)) return false;
  FailPulls(MakeError(ErrorCode::kTimeout,
                      linked() ? "nothing of it came for 30 s: the process that has it is stopped"
                               : "there was no connection to the process that has it for 30 s"));
  return linked();
}

// ---- the link ---------------------------------------------------------------------------------

bool BulkLink::Link(CallStream stream, std::string_view came, const std::string& hello,
                    Instant now) {
  Unlink(now);
  stream_ = std::move(stream);
  exchange_.Linked(hello, now);
  return Take(came);
}

void BulkLink::Unlink(Instant now) {
  stream_.reset();
  exchange_.Unlinked(now);
  refs_.Unlinked();
  place_ = nullptr;
  head_.clear();
  out_.clear();
  sent_ = 0;
  giving_.reset();
}

BulkLink::Went BulkLink::Run(Instant now, std::uint64_t round) {
  const Went read = ReadSome(now);
  if (read == Went::kOver) return read;
  const Went wrote = WriteSome(round);
  return wrote != Went::kOver && read == Went::kMore ? Went::kMore : wrote;
}

BulkLink::Went BulkLink::ReadSome(Instant now) {
  std::size_t read = 0;
  while (read < kBytesPerTurn) {
    const IoResult got = stream_->TryRead(Scratch(), kBulkReadBytes);
    if (got.outcome == IoOutcome::kWouldBlock) return Went::kIdle;
    if (got.outcome == IoOutcome::kEnded) {
      why_ = stream_->WhyEnded(got);
      return Went::kOver;
    }
    exchange_.Heard(now);
    read += got.bytes;
    if (!Take({Scratch(), got.bytes})) return Went::kOver;
  }
  return Went::kMore;
}

/// Takes received bytes. False: they break the rules.
bool BulkLink::Take(std::string_view bytes) {
  while (!bytes.empty()) {
    if (exchange_.coming() > 0) {
      const std::size_t some = std::min<std::uint64_t>(bytes.size(), exchange_.coming());
      if (place_ != nullptr) {
        std::memcpy(place_, bytes.data(), some);
        place_ += some;
      }
      bytes.remove_prefix(some);
      const PullId pull = exchange_.into();
      if (exchange_.Came(some)) EndPull(pull, *pulling_.at(pull).writing);
      continue;
    }
    const std::size_t some = std::min(bytes.size(), kBulkFrameBytes - head_.size());
    head_.append(bytes.substr(0, some));
    bytes.remove_prefix(some);
    if (head_.size() < kBulkFrameBytes) break;
    const StatusOr<BulkFrame> frame = ReadBulkFrame(head_);
    head_.clear();
    const Status taken = frame.ok() ? TakeFrame(*frame) : frame.status();
    if (taken.ok()) continue;
    why_ = "it sent " + MessageOf(taken);
    return false;
  }
  return true;
}

Status BulkLink::TakeFrame(const BulkFrame& frame) {
  TROUPE_ASSIGN(const BulkExchange::Order order, exchange_.Take(frame));
  using What = BulkExchange::Order::What;
  switch (order.what) {
    case What::kNothing:
      return absl::OkStatus();
    case What::kPart:
      return BeginPart(order.part);
    case What::kGone:
      EndPull(order.part.pull,
              MakeError(ErrorCode::kNotFound, "the process that had it has let go of it"));
      return absl::OkStatus();
    case What::kRefWord:
      return refs_.TakeWord(frame);
  }
  return absl::OkStatus();
}

Status BulkLink::BeginPart(const BulkPulls::Part& part) {
  place_ = nullptr;
  if (part.pull == 0) return absl::OkStatus();
  Pulling& pulling = pulling_.at(part.pull);
  if (!pulling.writing) {
    StatusOr<store::Writing> writing = store_.pool().Begin(part.total);
    if (!writing.ok()) {
      exchange_.Cancel(part.pull);
      EndPull(part.pull, writing.status());
      return absl::OkStatus();
    }
    pulling.writing = *writing;
  }
  place_ = pulling.writing->data + part.offset;
  return absl::OkStatus();
}

/// Puts what is to be sent next into out_ or giving_.
BulkLink::Filled BulkLink::Fill(std::uint64_t round) {
  out_.clear();
  sent_ = 0;
  exchange_.AppendWords(out_);
  const auto given = [this](const store::ObjectId& id) { return exchange_.Gives(id); };
  const bool told = refs_.AnswerAsked(round, out_, given);
  std::vector<store::ObjectId> released;
  const bool dropped = exchange_.AppendDropped(round, out_, released);
  for (const store::ObjectId& id : released) results_.erase(id);
  refs_.AppendWords(out_);
  exchange_.AppendAsks(out_);
  if (!out_.empty()) return Filled::kYes;
  const BulkFrame* const first = exchange_.first_read();
  if (first == nullptr) return told && dropped ? Filled::kNothing : Filled::kInDoubt;
  const BulkFrame read = *first;
  if (!exchange_.SettleRead(refs_.Gives(read.id), round)) return Filled::kInDoubt;
  BeginGiving(read);
  return Filled::kYes;
}

void BulkLink::BeginGiving(const BulkFrame& read) {
  Giving giving;
  store::ObjectId object = read.id;
  giving.kept = refs_.ValueOf(read.id, &giving.bytes, &object);
  if (giving.kept == nullptr) {
    const bool given = exchange_.Gives(read.id) || refs_.Gives(read.id);
    StatusOr<ObjectView> view = given ? store_.View(object) : MakeError(ErrorCode::kNotFound, "");
    if (view.ok()) giving.view = *std::move(view);
    giving.bytes = giving.view.bytes();
  }
  giving.offset = read.offset;
  giving.left = BulkExchange::AppendPart(read, giving.bytes.size(), out_);
  if (giving.left != 0) giving_.emplace(std::move(giving));
}

BulkLink::Went BulkLink::WriteSome(std::uint64_t round) {
  for (std::size_t written = 0; written < kBytesPerTurn;) {
    const Filled filled = sent_ == out_.size() && !giving_ ? Fill(round) : Filled::kYes;
    if (filled == Filled::kInDoubt) return Went::kMore;
    if (filled == Filled::kNothing) {
      if (!stream_->HasUnsent()) return Went::kIdle;
      const IoResult pushed = stream_->TryWrite(nullptr, 0);
      if (pushed.outcome == IoOutcome::kEnded) why_ = stream_->WhyEnded(pushed);
      return pushed.outcome == IoOutcome::kEnded ? Went::kOver
             : stream_->HasUnsent()              ? Went::kWrites
                                                 : Went::kIdle;
    }
    const std::string_view next = sent_ < out_.size()
                                      ? std::string_view(out_).substr(sent_)
                                      : giving_->bytes.substr(giving_->offset, giving_->left);
    const IoResult wrote = stream_->TryWrite(next.data(), next.size());
    if (wrote.outcome == IoOutcome::kWouldBlock) return Went::kWrites;
    if (wrote.outcome == IoOutcome::kEnded) {
      why_ = stream_->WhyEnded(wrote);
      return Went::kOver;
    }
    written += wrote.bytes;
    if (sent_ < out_.size()) {
      sent_ += wrote.bytes;
      continue;
    }
    given_bytes_ += wrote.bytes;
    giving_->offset += wrote.bytes;
    giving_->left -= wrote.bytes;
    if (giving_->left == 0) giving_.reset();
  }
  return Went::kMore;
}

}  // namespace troupe::actors
