#include "actors/core/remote/bulk_exchange.h"

#include <algorithm>
#include <utility>

namespace troupe::actors {

// ---- what is given ----------------------------------------------------------------------------

void BulkExchange::TakeBack(const store::ObjectId& id) {
  const auto found = given_.find(id);
  if (found != given_.end() && --found->second == 0) given_.erase(found);
}

void BulkExchange::GiveResult(const store::ObjectId& id, std::vector<store::ObjectId> inside) {
  for (const store::ObjectId& each : inside) Give(each);
  results_[id] = std::move(inside);
}

void BulkExchange::WithdrawResult(const store::ObjectId& id) {
  const auto found = results_.find(id);
  if (found == results_.end()) return;
  for (const store::ObjectId& each : found->second) TakeBack(each);
  results_.erase(found);
}

// ---- what is pulled and awaited ---------------------------------------------------------------

BulkExchange::PullId BulkExchange::BeginPull(const store::ObjectId& id, bool of_ref,
                                             const Refs& refs, Instant now) {
  BeginAwaiting(refs, now);
  const PullId pull = pulls_.Begin(id);
  if (of_ref) of_refs_.insert(pull);
  return pull;
}

void BulkExchange::BeginAwaiting(const Refs& refs, Instant now) {
  if (!Awaits(refs)) progress_ = now;
}

void BulkExchange::Cancel(PullId pull) {
  pulls_.Cancel(pull);
  of_refs_.erase(pull);
}

std::vector<BulkExchange::PullId> BulkExchange::CancelPulls(bool of_refs) {
  std::vector<PullId> over = pulls_.all();
  if (!of_refs) std::erase_if(over, [this](PullId pull) { return of_refs_.count(pull) != 0; });
  for (const PullId pull : over) Cancel(pull);
  return over;
}

void BulkExchange::Took(const store::ObjectId& id) {
  took_.insert(id);
  if (linked_) AppendBulkFrame(words_, WordOf(BulkWord::kTaken, id));
}

void BulkExchange::EndCalls(Instant now) {
  given_.clear();
  results_.clear();
  took_.clear();
  Attached(false, now);
}

// ---- the two connections, and time ------------------------------------------------------------

void BulkExchange::Attached(bool attached, Instant now) {
  attached_ = attached;
  if (!attached && !linked_) lonely_since_ = now;
}

void BulkExchange::Linked(std::string hello, Instant now) {
  linked_ = true;
  words_ = std::move(hello);
  progress_ = now;
  heard_ = false;
  for (const store::ObjectId& id : took_) AppendBulkFrame(words_, WordOf(BulkWord::kTaken, id));
}

void BulkExchange::Unlinked(Instant now) {
  linked_ = false;
  pulls_.Unlinked();
  reads_.clear();
  read_doubt_.Clear();
  taken_.clear();
  taken_doubt_.Clear();
  words_.clear();
  if (!attached_) lonely_since_ = now;
}

void BulkExchange::Heard(Instant now) {
  progress_ = now;
  heard_ = true;
}

bool BulkExchange::WantsLink(const Refs& refs) const {
  return !given_.empty() || !pulls_.empty() || !took_.empty() || !RefsSettled(refs);
}

std::optional<Instant> BulkExchange::Deadline(const Refs& refs) const {
  std::optional<Instant> next;
  if (Awaits(refs)) next = progress_ + kSilence;
  const Instant kept = lonely_since_ + kKept;
  const bool keeps = !results_.empty() || !refs.idle;
  if (keeps && !attached_ && !linked_ && (!next || kept < *next)) next = kept;
  return next;
}

bool BulkExchange::GiveUpDeserted(Instant now) {
  if (attached_ || linked_ || now - lonely_since_ < kKept) return false;
  while (!results_.empty()) WithdrawResult(store::ObjectId(results_.begin()->first));
  return true;
}

bool BulkExchange::Silent(const Refs& refs, Instant now) const {
  return Awaits(refs) && now - progress_ >= kSilence;
}

// ---- what comes -------------------------------------------------------------------------------

StatusOr<BulkExchange::Order> BulkExchange::Take(const BulkFrame& frame) {
  switch (frame.word) {
    case BulkWord::kHello:
      return MakeError(ErrorCode::kInvalid, "a second hello");
    case BulkWord::kRead:
      if (reads_.size() >= kReadsMax) {
        return MakeError(ErrorCode::kInvalid, "requests for more than 64 parts at once");
      }
      reads_.push_back(frame);
      return Order();
    case BulkWord::kPart: {
      TROUPE_ASSIGN(const BulkPulls::Part part, pulls_.Begins(frame));
      return Order{Order::What::kPart, part};
    }
    case BulkWord::kGone: {
      Order order;
      order.what = Order::What::kGone;
      TROUPE_ASSIGN(order.part.pull, pulls_.Gone(frame));
      of_refs_.erase(order.part.pull);
      return order;
    }
    case BulkWord::kTaken:
      return TakeTaken(frame.id);
    case BulkWord::kDropped:
      took_.erase(frame.id);
      return Order();
    default:
      return Order{Order::What::kRefWord, {}};
  }
}

StatusOr<BulkExchange::Order> BulkExchange::TakeTaken(const store::ObjectId& id) {
  if (words_.size() + taken_.size() * kBulkFrameBytes >= kWordsMax) {
    return MakeError(ErrorCode::kInvalid, "word of results, and read no answer");
  }
  taken_.push_back(id);
  return Order();
}

bool BulkExchange::Came(std::uint64_t bytes) {
  const PullId pull = pulls_.into();
  if (!pulls_.Came(bytes)) return false;
  of_refs_.erase(pull);
  return true;
}

// ---- what goes --------------------------------------------------------------------------------

void BulkExchange::AppendWords(std::string& out) { out += std::exchange(words_, {}); }

bool BulkExchange::AppendDropped(std::uint64_t round, std::string& out,
                                 std::vector<store::ObjectId>& released) {
  while (!taken_.empty()) {
    const store::ObjectId id = taken_.front();
    const bool known = results_.count(id) != 0;
    if (!taken_doubt_.Settled(known, round)) return false;
    taken_.pop_front();
    if (known) released.push_back(id);
    WithdrawResult(id);
    AppendBulkFrame(out, WordOf(BulkWord::kDropped, id));
  }
  return true;
}

void BulkExchange::AppendAsks(std::string& out) {
  while (const std::optional<BulkFrame> ask = pulls_.NextAsk()) AppendBulkFrame(out, *ask);
}

bool BulkExchange::SettleRead(bool lent, std::uint64_t round) {
  if (!read_doubt_.Settled(lent || Gives(reads_.front().id), round)) return false;
  reads_.pop_front();
  return true;
}

std::uint64_t BulkExchange::AppendPart(const BulkFrame& read, std::uint64_t value_bytes,
                                       std::string& out) {
  if (read.offset >= value_bytes) {
    AppendBulkFrame(out, WordOf(BulkWord::kGone, read.id, read.offset));
    return 0;
  }
  BulkFrame part = WordOf(BulkWord::kPart, read.id, read.offset);
  part.total = value_bytes;
  part.bytes = std::min(read.bytes, value_bytes - read.offset);
  AppendBulkFrame(out, part);
  return part.bytes;
}

}  // namespace troupe::actors
