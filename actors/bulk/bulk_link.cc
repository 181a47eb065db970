#include "actors/bulk/bulk_link.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "actors/net/now.h"

namespace troupe::actors {
namespace {

constexpr std::size_t kBulkReadBytes = 256u << 10;
constexpr std::size_t kWordsMax = 8u << 20;  // more than a value's references take
constexpr std::size_t kBytesPerTurn = 1u << 20;  // of one link, either way, before others have theirs

char* Scratch() {
  static thread_local const std::unique_ptr<char[]> scratch(new char[kBulkReadBytes]);
  return scratch.get();
}

}  // namespace

BulkLink::BulkLink(ObjectStore& store)
    : store_(store), refs_(store, [this](const store::ObjectId& name, Done done) {
        BeginPull(name, /*of_ref=*/true, std::move(done), Now());
      }) {}

// ---- what is given, what is pulled -------------------------------------------------------------------

void BulkLink::TakeBack(const store::ObjectId& id) {
  const auto found = given_.find(id);
  if (found != given_.end() && --found->second == 0) given_.erase(found);
}

void BulkLink::Took(const store::ObjectId& id) {
  took_.insert(id);
  if (linked()) AppendBulkFrame(words_, WordOf(BulkWord::kTaken, id));
}

void BulkLink::GiveResult(const store::ObjectId& id, Handles handles, std::vector<store::ObjectId> inside) {
  for (const store::ObjectId& each : inside) Give(each);
  results_[id] = GivenResult{std::move(handles), std::move(inside)};
}

void BulkLink::WithdrawResult(const store::ObjectId& id) {
  const auto found = results_.find(id);
  if (found == results_.end()) return;
  for (const store::ObjectId& each : found->second.inside) TakeBack(each);
  results_.erase(found);
}

void BulkLink::Pull(const store::ObjectId& id, Done done, Instant now) {
  BeginPull(id, /*of_ref=*/false, std::move(done), now);
}

void BulkLink::BeginPull(const store::ObjectId& id, bool of_ref, Done done, Instant now) {
  if (!Waits()) progress_ = now;
  pulling_.emplace(pulls_.Begin(id), Pulling{std::move(done), of_ref, std::nullopt});
}

void BulkLink::TakeRefs(const std::vector<store::ObjectId>& names, RemoteRefs::Then then, Instant now) {
  if (!Waits()) progress_ = now;
  refs_.Take(names, std::move(then));
}

/// The pull is over, and pulls_ knows it.
void BulkLink::EndPull(BulkPulls::PullId pull, StatusOr<store::Writing> result) {
  const auto found = pulling_.find(pull);
  if (found == pulling_.end()) return;
  Pulling over = std::move(found->second);
  pulling_.erase(found);
  if (!result.ok() && over.writing) store_.pool().GiveUp(*over.writing);
  over.done(std::move(result));
}

void BulkLink::FailPulls(const Status& why, bool refs) {
  for (const BulkPulls::PullId pull : pulls_.all()) {
    const auto found = pulling_.find(pull);
    if (found == pulling_.end() || (found->second.of_ref && !refs)) continue;
    if (pulls_.into() == pull) place_ = nullptr;
    pulls_.Cancel(pull);
    EndPull(pull, why);
  }
  if (refs) refs_.GiveUpAsked("the process that the ref came from does not answer: " + MessageOf(why));
}

bool BulkLink::EndCalls(const Status& why, Instant now) {
  FailPulls(why, /*refs=*/false);
  given_.clear();
  results_.clear();
  took_.clear();
  Attached(false, now);
  return Over();
}

void BulkLink::GiveUp(const Status& why) {
  static_cast<void>(EndCalls(why, Now()));
  refs_.End(kOwnerDied, MessageOf(why));
  FailPulls(why);
  giving_.reset();
  stream_.reset();
}

// ---- time --------------------------------------------------------------------------------------------

void BulkLink::Attached(bool attached, Instant now) {
  attached_ = attached;
  if (!attached && !linked()) lonely_since_ = now;
}

std::optional<Instant> BulkLink::Deadline() const {
  std::optional<Instant> next;
  if (Waits()) next = progress_ + kSilence;
  const Instant kept = lonely_since_ + kKept;
  const bool keeps = !results_.empty() || !refs_.idle();
  if (keeps && !attached_ && !linked() && (!next || kept < *next)) next = kept;
  return next;
}

bool BulkLink::Expire(Instant now) {
  if (Deserted(now)) {
    while (!results_.empty()) WithdrawResult(store::ObjectId(results_.begin()->first));
    EndRefs("there was no connection to it for 30 s: it ended, or its host cannot be reached");
  }
  if (!Waits() || now - progress_ < kSilence) return false;
  FailPulls(MakeError(ErrorCode::kTimeout, linked() ? "nothing of it came for 30 s: the process that has it is stopped"
                                                    : "there was no connection to the process that has it for 30 s"));
  return linked();
}

// ---- the link ----------------------------------------------------------------------------------------

bool BulkLink::Link(CallStream stream, std::string_view came, const std::string& hello, Instant now) {
  Unlink(now);
  stream_ = std::move(stream);
  words_ = hello;
  progress_ = now;
  heard_ = false;
  for (const store::ObjectId& id : took_) AppendBulkFrame(words_, WordOf(BulkWord::kTaken, id));
  return Take(came);
}

void BulkLink::Unlink(Instant now) {
  stream_.reset();
  pulls_.Unlinked();
  refs_.Unlinked();
  place_ = nullptr;
  head_.clear();
  reads_.clear();
  read_doubt_.Clear();
  taken_.clear();
  taken_doubt_.Clear();
  words_.clear();
  out_.clear();
  sent_ = 0;
  giving_.reset();
  if (!attached_) lonely_since_ = now;
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
    progress_ = now;
    heard_ = true;
    read += got.bytes;
    if (!Take({Scratch(), got.bytes})) return Went::kOver;
  }
  return Went::kMore;
}

/// What came. False: it breaks the rules.
bool BulkLink::Take(std::string_view bytes) {
  while (!bytes.empty()) {
    if (pulls_.coming() > 0) {
      const std::size_t some = std::min<std::uint64_t>(bytes.size(), pulls_.coming());
      if (place_ != nullptr) {
        std::memcpy(place_, bytes.data(), some);
        place_ += some;
      }
      bytes.remove_prefix(some);
      const BulkPulls::PullId pull = pulls_.into();
      if (pulls_.Came(some)) EndPull(pull, *pulling_.at(pull).writing);
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
  switch (frame.word) {
    case BulkWord::kHello:
      return MakeError(ErrorCode::kInvalid, "a second hello");
    case BulkWord::kRead:
      if (reads_.size() >= kReadsMax) return MakeError(ErrorCode::kInvalid, "requests for more than 64 parts at once");
      reads_.push_back(frame);
      return absl::OkStatus();
    case BulkWord::kPart:
      return BeginPart(frame);
    case BulkWord::kGone: {
      TROUPE_ASSIGN(const BulkPulls::PullId pull, pulls_.Gone(frame));
      EndPull(pull, MakeError(ErrorCode::kNotFound, "the process that had it has let go of it"));
      return absl::OkStatus();
    }
    case BulkWord::kTaken:
      if (words_.size() + taken_.size() * kBulkFrameBytes >= kWordsMax) {
        return MakeError(ErrorCode::kInvalid, "word of results, and read no answer");
      }
      taken_.push_back(frame.id);
      return absl::OkStatus();
    case BulkWord::kDropped:
      took_.erase(frame.id);
      return absl::OkStatus();
    default:
      return refs_.TakeWord(frame);
  }
}

Status BulkLink::BeginPart(const BulkFrame& frame) {
  TROUPE_ASSIGN(const BulkPulls::Part part, pulls_.Begins(frame));
  place_ = nullptr;
  if (part.pull == 0) return absl::OkStatus();
  Pulling& pulling = pulling_.at(part.pull);
  if (!pulling.writing) {
    StatusOr<store::Writing> writing = store_.pool().Begin(part.total);
    if (!writing.ok()) {
      pulls_.Cancel(part.pull);
      EndPull(part.pull, writing.status());
      return absl::OkStatus();
    }
    pulling.writing = *writing;
  }
  place_ = pulling.writing->data + part.offset;
  return absl::OkStatus();
}

/// Lets go of results that the other end has taken. False: one of them may still be given.
bool BulkLink::DropTaken(std::uint64_t round) {
  while (!taken_.empty()) {
    const store::ObjectId id = taken_.front();
    if (!taken_doubt_.Settled(results_.count(id) != 0, round)) return false;
    taken_.pop_front();
    WithdrawResult(id);
    AppendBulkFrame(words_, WordOf(BulkWord::kDropped, id));
  }
  return true;
}

/// Puts what is to be sent next into out_ or giving_.
BulkLink::Filled BulkLink::Fill(std::uint64_t round) {
  const bool told = refs_.Answer(round, words_, [this](const store::ObjectId& id) { return Gives(id); });
  const bool answered = DropTaken(round) && told;
  refs_.AppendWords(words_);
  out_ = std::exchange(words_, {});
  sent_ = 0;
  while (const std::optional<BulkFrame> ask = pulls_.NextAsk()) AppendBulkFrame(out_, *ask);
  if (!out_.empty()) return Filled::kYes;
  if (reads_.empty()) return answered ? Filled::kNothing : Filled::kInDoubt;
  const BulkFrame read = reads_.front();
  if (!read_doubt_.Settled(Gives(read.id) || refs_.Gives(read.id), round)) return Filled::kInDoubt;
  reads_.pop_front();
  BeginGiving(read);
  return Filled::kYes;
}

void BulkLink::BeginGiving(const BulkFrame& read) {
  Giving giving;
  store::ObjectId object = read.id;
  giving.kept = refs_.ValueOf(read.id, &giving.bytes, &object);
  if (giving.kept == nullptr) {
    StatusOr<ObjectView> view =
        Gives(read.id) || refs_.Gives(read.id) ? store_.View(object) : MakeError(ErrorCode::kNotFound, "");
    if (view.ok()) giving.view = *std::move(view);
    giving.bytes = giving.view.bytes();
  }
  if (read.offset >= giving.bytes.size()) {
    return AppendBulkFrame(out_, WordOf(BulkWord::kGone, read.id, read.offset));
  }
  BulkFrame part = WordOf(BulkWord::kPart, read.id, read.offset);
  part.total = giving.bytes.size();
  part.bytes = std::min(read.bytes, part.total - read.offset);
  AppendBulkFrame(out_, part);
  giving.offset = read.offset;
  giving.left = part.bytes;
  giving_.emplace(std::move(giving));
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
    const std::string_view next = sent_ < out_.size() ? std::string_view(out_).substr(sent_)
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
