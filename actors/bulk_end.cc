#include "actors/bulk_end.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace troupe::actors {
namespace {

constexpr std::size_t kReadBytes = 256u << 10;
// A read may have come while a batch of words ran, before the one that gives its value: the next batch is to end.
constexpr std::uint64_t kDoubtRounds = 2;
constexpr std::size_t kWordsMax = 4u << 20;
constexpr std::size_t kBytesPerTurn = 1u << 20;  // of one link, either way, before others have theirs

char* Scratch() {
  static thread_local const std::unique_ptr<char[]> scratch(new char[kReadBytes]);
  return scratch.get();
}

BulkFrame Word(BulkWord word, const store::ObjectId& id, std::uint64_t offset = 0) {
  BulkFrame frame;
  frame.word = word;
  frame.id = id;
  frame.offset = offset;
  return frame;
}

}  // namespace

// ---- what is given, what is pulled -------------------------------------------------------------------

void BulkEnd::TakeBack(const store::ObjectId& id) {
  const auto found = given_.find(id);
  if (found != given_.end() && --found->second == 0) given_.erase(found);
}

void BulkEnd::Took(const store::ObjectId& id) {
  took_.insert(id);
  if (linked()) AppendBulkFrame(words_, Word(BulkWord::kTaken, id));
}

void BulkEnd::GiveResult(const store::ObjectId& id, Handles handles) { results_[id] = std::move(handles); }

void BulkEnd::Pull(const store::ObjectId& id, Done done, Instant now) {
  if (pulling_.empty()) progress_ = now;
  pulling_.emplace(pulls_.Begin(id), Pulling{std::move(done), std::nullopt});
}

/// The pull is over, and pulls_ knows it.
void BulkEnd::EndPull(BulkPulls::PullId pull, StatusOr<store::Writing> result) {
  const auto found = pulling_.find(pull);
  if (found == pulling_.end()) return;
  Pulling over = std::move(found->second);
  pulling_.erase(found);
  if (!result.ok() && over.writing) store_.pool().GiveUp(*over.writing);
  over.done(std::move(result));
}

void BulkEnd::FailPulls(const Status& why) {
  place_ = nullptr;
  for (const BulkPulls::PullId pull : pulls_.all()) {
    pulls_.Cancel(pull);
    EndPull(pull, why);
  }
}

void BulkEnd::GiveUp(const Status& why) {
  FailPulls(why);
  given_.clear();
  results_.clear();
  took_.clear();
  giving_.reset();
  stream_.reset();
}

// ---- time --------------------------------------------------------------------------------------------

void BulkEnd::Attached(bool attached, Instant now) {
  attached_ = attached;
  if (!attached && !linked()) lonely_since_ = now;
}

std::optional<Instant> BulkEnd::Deadline() const {
  std::optional<Instant> next;
  if (!pulling_.empty()) next = progress_ + kSilence;
  const Instant kept = lonely_since_ + kKept;
  if (!results_.empty() && !attached_ && !linked() && (!next || kept < *next)) next = kept;
  return next;
}

bool BulkEnd::Expire(Instant now) {
  if (!results_.empty() && !attached_ && !linked() && now - lonely_since_ >= kKept) results_.clear();
  if (pulling_.empty() || now - progress_ < kSilence) return false;
  FailPulls(MakeError(ErrorCode::kTimeout, linked() ? "nothing of it came for 30 s: the process that has it is stopped"
                                                    : "there was no connection to the process that has it for 30 s"));
  return linked();
}

// ---- the link ----------------------------------------------------------------------------------------

bool BulkEnd::Link(CallStream stream, std::string_view came, const std::string& hello, Instant now) {
  Unlink(now);
  stream_ = std::move(stream);
  words_ = hello;
  progress_ = now;
  heard_ = false;
  for (const store::ObjectId& id : took_) AppendBulkFrame(words_, Word(BulkWord::kTaken, id));
  return Take(came);
}

void BulkEnd::Unlink(Instant now) {
  stream_.reset();
  pulls_.Unlinked();
  place_ = nullptr;
  head_.clear();
  reads_.clear();
  doubted_.reset();
  words_.clear();
  out_.clear();
  sent_ = 0;
  giving_.reset();
  if (!attached_) lonely_since_ = now;
}

BulkEnd::Went BulkEnd::Run(Instant now, std::uint64_t round) {
  const Went read = ReadSome(now);
  if (read == Went::kOver) return read;
  const Went wrote = WriteSome(round);
  return wrote != Went::kOver && read == Went::kMore ? Went::kMore : wrote;
}

BulkEnd::Went BulkEnd::ReadSome(Instant now) {
  std::size_t read = 0;
  while (read < kBytesPerTurn) {
    const IoResult got = stream_->TryRead(Scratch(), kReadBytes);
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
bool BulkEnd::Take(std::string_view bytes) {
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

Status BulkEnd::TakeFrame(const BulkFrame& frame) {
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
      results_.erase(frame.id);
      if (words_.size() >= kWordsMax) return MakeError(ErrorCode::kInvalid, "word of results, and read no answer");
      AppendBulkFrame(words_, Word(BulkWord::kDropped, frame.id));
      return absl::OkStatus();
    case BulkWord::kDropped:
      took_.erase(frame.id);
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

Status BulkEnd::BeginPart(const BulkFrame& frame) {
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

/// Puts what is to be sent next into out_ or giving_.
BulkEnd::Filled BulkEnd::Fill(std::uint64_t round) {
  out_ = std::exchange(words_, {});
  sent_ = 0;
  while (const std::optional<BulkFrame> ask = pulls_.NextAsk()) AppendBulkFrame(out_, *ask);
  if (!out_.empty()) return Filled::kYes;
  if (reads_.empty()) return Filled::kNothing;
  const BulkFrame read = reads_.front();
  if (!Gives(read.id)) {
    if (!doubted_) doubted_ = round;
    if (round < *doubted_ + kDoubtRounds) return Filled::kInDoubt;
  }
  doubted_.reset();
  reads_.pop_front();
  BeginGiving(read);
  return Filled::kYes;
}

void BulkEnd::BeginGiving(const BulkFrame& read) {
  StatusOr<ObjectView> view = Gives(read.id) ? store_.View(read.id) : MakeError(ErrorCode::kNotFound, "");
  if (!view.ok() || read.offset >= view->bytes().size()) {
    return AppendBulkFrame(out_, Word(BulkWord::kGone, read.id, read.offset));
  }
  BulkFrame part = Word(BulkWord::kPart, read.id, read.offset);
  part.total = view->bytes().size();
  part.bytes = std::min(read.bytes, part.total - read.offset);
  AppendBulkFrame(out_, part);
  giving_ = Giving{*std::move(view), read.offset, part.bytes};
}

BulkEnd::Went BulkEnd::WriteSome(std::uint64_t round) {
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
                                                      : giving_->view.bytes().substr(giving_->offset, giving_->left);
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
