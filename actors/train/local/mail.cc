#include "actors/train/local/mail.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "actors/train/local/local_runner.h"
#include "runtime/base/signals_blocked.h"

namespace troupe::train {
namespace {

constexpr std::uint32_t kMark = 0x6c69616d;
constexpr std::uint64_t kMessageBytesMax = std::uint64_t{1} << 48;

struct Header {
  std::uint64_t bytes;
  std::int32_t tag;
  std::uint32_t mark;
};

std::size_t BytesOf(const Operation& operation) {
  return operation.count * WidthOf(operation.type);
}

std::string Words(const Operation& operation) {
  const bool sends = operation.kind == Collective::kSend;
  return std::string(sends ? "a send of " : "a receive of ") + std::to_string(BytesOf(operation)) +
         (sends ? " bytes to rank " : " bytes from rank ") +
         (operation.root < 0 ? std::string("any") : std::to_string(operation.root)) + ", tag " +
         std::to_string(operation.tag);
}

/// Into a ring at a place that only grows, around its end.
void Put(std::byte* ring, std::size_t size, std::uint64_t at, const void* from, std::size_t bytes) {
  const std::size_t begin = at % size, first = std::min(bytes, size - begin);
  if (first > 0) std::memcpy(ring + begin, from, first);
  if (bytes > first) std::memcpy(ring, static_cast<const std::byte*>(from) + first, bytes - first);
}

void Get(const std::byte* ring, std::size_t size, std::uint64_t at, void* to, std::size_t bytes) {
  const std::size_t begin = at % size, first = std::min(bytes, size - begin);
  if (first > 0) std::memcpy(to, ring + begin, first);
  if (bytes > first) std::memcpy(static_cast<std::byte*>(to) + first, ring, bytes - first);
}

}  // namespace

Mail::Mail(const Mailboxes& boxes, const Clock& clock, std::function<Status(const Status&)> ended)
    : boxes_(boxes),
      area_(boxes.area()),
      clock_(clock),
      ended_(std::move(ended)),
      incoming_(static_cast<std::size_t>(boxes.size())) {}

Mail::~Mail() {
  std::thread thread;
  {
    MutexLock lock(mutex_);
    ending_ = true;
    thread = std::move(thread_);
    changed_.NotifyAll();
  }
  if (thread.joinable()) thread.join();
}

void Mail::Start(const std::shared_ptr<LocalWork>& work, const std::vector<Operation>& operations) {
  const Instant now = clock_.Now();
  const auto left = std::make_shared<std::size_t>(operations.size());
  {
    MutexLock lock(mutex_);
    while (outstanding_ >= kStartedMax) changed_.Wait(mutex_);
    for (const auto& operation : operations) {
      const bool is_bounded = operation.most > Duration::zero();
      new_.push_back({work, left, operation, is_bounded ? now + operation.most : Instant::max()});
    }
    outstanding_ += operations.size();
    has_new_ = true;
    if (!thread_.joinable()) {
      const SignalsBlocked blocked;
      boxes_.Begin();
      thread_ = std::thread([this] { Run(); });
    }
    changed_.NotifyAll();
  }
  area_.Nudge();
}

void Mail::Drain() {
  MutexLock lock(mutex_);
  while (outstanding_ > 0) changed_.Wait(mutex_);
}

void Mail::TakeNew() {
  MutexLock lock(mutex_);
  while (letters_.empty() && new_.empty() && !ending_) changed_.Wait(mutex_);
  letters_.splice(letters_.end(), new_);
  has_new_ = false;
}

void Mail::Run() {
  for (;;) {
    TakeNew();
    if (letters_.empty()) return;
    while (MoveAll()) continue;
    EndGone();
    if (letters_.empty()) continue;
    const auto woken =
        area_.Await([this] { return has_new_.load() || CanMove(); }, clock_, Earliest());
    if (woken == Woken::kStopped)
      End(MakeError(ErrorCode::kCancelled, "stopped"));
    else if (woken == Woken::kLate)
      EndLate(clock_.Now());
  }
}

Instant Mail::Earliest() const {
  Instant earliest = Instant::max();
  for (const auto& letter : letters_) earliest = std::min(earliest, letter.until);
  return earliest;
}

bool Mail::IsAwaited(int peer) const {
  return std::any_of(letters_.begin(), letters_.end(), [peer](const Letter& letter) {
    return letter.operation.kind == Collective::kRecv &&
           (letter.operation.root == peer || letter.operation.root < 0);
  });
}

bool Mail::CanMove() const {
  for (int peer = 0; peer < boxes_.size(); ++peer) {
    const Mailbox& box = boxes_.from(peer);
    if (box.written.load() != box.read.load() && IsAwaited(peer)) return true;
  }
  for (const auto& letter : letters_) {
    if (LostPeer(letter) >= 0) return true;
    if (letter.operation.kind != Collective::kSend) continue;
    if (letter.moved == sizeof(Header) + BytesOf(letter.operation)) {
      if (boxes_.is_kept(letter.operation.root, letter.end_at)) return true;
      continue;
    }
    const Mailbox& box = boxes_.to(letter.operation.root);
    const std::uint64_t room = boxes_.bytes() - (box.written.load() - box.read.load());
    if (room >= (letter.moved == 0 ? sizeof(Header) : 1)) return true;
  }
  return false;
}

/// A rank that it needs and that is gone, with all that came from it before (MA3); -1: none.
int Mail::LostPeer(const Letter& letter) const {
  const auto is_lost = [&](int peer) {
    if (!boxes_.gone(peer)) return false;
    const Mailbox& box = boxes_.from(peer);
    return letter.operation.kind == Collective::kSend || box.written.load() == box.read.load();
  };
  const int root = letter.operation.root;
  if (root >= 0) return is_lost(root) ? root : -1;
  int last = -1;
  for (int peer = 0; peer < boxes_.size(); ++peer) {
    if (peer == boxes_.rank()) continue;
    if (!is_lost(peer)) return -1;
    last = peer;
  }
  return last;
}

bool Mail::MoveAll() {
  bool moved = false;
  std::vector<bool> is_behind(incoming_.size());  // another send to that rank is not done
  for (auto at = letters_.begin(); at != letters_.end();) {
    const auto next = std::next(at);
    if (at->operation.kind == Collective::kSend) {
      const auto peer = static_cast<std::size_t>(at->operation.root);
      if (!is_behind[peer]) {
        const std::size_t whole = sizeof(Header) + BytesOf(at->operation);
        if (at->moved < whole) moved = MoveSend(at) || moved;
        is_behind[peer] = at->moved < whole;
        if (!is_behind[peer] && boxes_.is_kept(at->operation.root, at->end_at)) Done(at, -1);
      }
    } else if (!at->is_bound) {
      moved = FromAside(at) || moved;
    }
    if (letters_.empty()) return moved;  // finished, or ended with the group
    at = next;
  }
  for (int peer = 0; peer < boxes_.size() && !letters_.empty(); ++peer)
    if (IsAwaited(peer)) moved = Receive(peer) || moved;
  return moved;
}

bool Mail::MoveSend(Letters::iterator at) {
  const Operation& operation = at->operation;
  Mailbox& box = boxes_.to(operation.root);
  const std::size_t size = boxes_.bytes(), total = sizeof(Header) + BytesOf(operation);
  std::uint64_t written = box.written.load();
  std::size_t room = size - static_cast<std::size_t>(written - box.read.load());
  if (room > size) return false;  // the peer says what cannot be
  if (at->moved == 0) {
    if (room < sizeof(Header)) return false;
    const Header header{BytesOf(operation), operation.tag, kMark};
    Put(box.bytes, size, written, &header, sizeof header);
    at->moved = sizeof header;
    written += sizeof header;
    room -= sizeof header;
  }
  const std::size_t some = std::min(room, total - at->moved);
  const auto* from = static_cast<const std::byte*>(operation.send) + (at->moved - sizeof(Header));
  Put(box.bytes, size, written, from, some);
  at->moved += some;
  written += some;
  at->end_at = written;
  const bool moved = written != box.written.load();
  box.written.store(written);
  if (moved) boxes_.Ring(operation.root);
  return moved;
}

Mail::Letters::iterator Mail::Wanting(int peer, int tag) {
  return std::find_if(letters_.begin(), letters_.end(), [&](const Letter& letter) {
    const Operation& each = letter.operation;
    return each.kind == Collective::kRecv && !letter.is_bound && each.tag == tag &&
           (each.root == peer || each.root < 0);
  });
}

/// A message that came before it was asked for.
bool Mail::FromAside(Letters::iterator at) {
  const Operation& operation = at->operation;
  for (int peer = 0; peer < boxes_.size(); ++peer) {
    if (operation.root >= 0 && operation.root != peer) continue;
    Incoming& from = incoming_[static_cast<std::size_t>(peer)];
    for (auto aside = from.aside.begin(); aside != from.aside.end(); ++aside) {
      if (aside->tag != operation.tag || (from.is_aside && &*aside == &from.aside.back())) continue;
      if (aside->bytes.size() != BytesOf(operation)) {
        End(MakeError(ErrorCode::kInvalid, Words(operation) + ": rank " + std::to_string(peer) +
                                               " has sent " + std::to_string(aside->bytes.size())));
        return true;
      }
      if (!aside->bytes.empty())
        std::memcpy(operation.recv, aside->bytes.data(), aside->bytes.size());
      aside_bytes_ -= aside->bytes.size();
      from.aside.erase(aside);
      Done(at, peer);
      return true;
    }
  }
  return false;
}

/// False where there is none yet, or it does not go on.
bool Mail::BeginMessage(int peer, Incoming& from) {
  Mailbox& box = boxes_.from(peer);
  const std::uint64_t read = box.read.load(), written = box.written.load();
  if (written - read < sizeof(Header)) return false;
  Header header;
  Get(box.bytes, boxes_.bytes(), read, &header, sizeof header);
  if (written - read > boxes_.bytes() || header.mark != kMark || header.bytes > kMessageBytesMax) {
    End(MakeError(ErrorCode::kInvalid,
                  "rank " + std::to_string(peer) + " sends what is no message"));
    return false;
  }
  from = {true,  header.bytes,         0, header.tag, Wanting(peer, header.tag),
          false, std::move(from.aside)};
  box.read.store(read + sizeof header);
  if (from.into != letters_.end()) {
    if (BytesOf(from.into->operation) == header.bytes) {
      from.into->is_bound = true;
      return true;
    }
    End(MakeError(ErrorCode::kInvalid, Words(from.into->operation) + ": rank " +
                                           std::to_string(peer) + " sends " +
                                           std::to_string(header.bytes)));
    return false;
  }
  if (header.bytes > kAsideBytesMax - aside_bytes_) {  // MA2
    End(MakeError(ErrorCode::kTooLarge,
                  "rank " + std::to_string(peer) + " sends " + std::to_string(header.bytes) +
                      " bytes with tag " + std::to_string(header.tag) +
                      ", which nobody asks for, before what is asked for; at most " +
                      std::to_string(kAsideBytesMax) + " are put aside"));
    return false;
  }
  aside_bytes_ += header.bytes;
  from.is_aside = true;
  from.aside.push_back({header.tag, std::vector<std::byte>(header.bytes)});
  return true;
}

bool Mail::Receive(int peer) {
  Incoming& from = incoming_[static_cast<std::size_t>(peer)];
  Mailbox& box = boxes_.from(peer);
  const bool begins = !from.begun;
  if (begins && !BeginMessage(peer, from)) return false;
  const std::uint64_t read = box.read.load();
  const std::size_t there = static_cast<std::size_t>(box.written.load() - read);
  const std::size_t some =
      std::min({there, static_cast<std::size_t>(from.bytes - from.got), boxes_.bytes()});
  std::byte* const to = from.is_aside ? from.aside.back().bytes.data()
                                      : static_cast<std::byte*>(from.into->operation.recv);
  if (some > 0) Get(box.bytes, boxes_.bytes(), read, to + from.got, some);
  from.got += some;
  box.read.store(read + some);
  if (begins || some > 0) boxes_.Ring(peer);
  if (from.got == from.bytes) {
    from.begun = false;
    if (!std::exchange(from.is_aside, false)) Done(from.into, peer);
  }
  return begins || some > 0;
}

void Mail::Done(Letters::iterator at, int source) {
  const auto work = at->work;
  if (source >= 0) work->set_source(source);
  const bool is_last = --*at->left == 0;
  letters_.erase(at);
  {
    MutexLock lock(mutex_);
    --outstanding_;
    changed_.NotifyAll();
  }
  if (is_last) work->Finish(absl::OkStatus());
}

void Mail::EndGone() {
  for (const auto& letter : letters_) {
    const int lost = LostPeer(letter);
    if (lost >= 0) return End(MakeError(ErrorCode::kConnection, std::to_string(lost)));
  }
}

void Mail::EndLate(Instant now) {
  for (const auto& letter : letters_) {
    if (letter.until > now) continue;
    return End(MakeError(ErrorCode::kTimeout, Words(letter.operation) + " was not done after " +
                                                  SecondsText(letter.operation.most) +
                                                  ", counted from its start on rank " +
                                                  std::to_string(boxes_.rank())));
  }
}

/// The group is at its end: whatever is outstanding is.
void Mail::End(const Status& why) {
  const Status told = ended_(why);
  Letters letters;
  letters.swap(letters_);
  for (auto& from : incoming_) from.begun = from.is_aside = false;
  {
    MutexLock lock(mutex_);
    letters.splice(letters.end(), new_);
    outstanding_ = 0;
    changed_.NotifyAll();
  }
  for (const auto& letter : letters) letter.work->Finish(told);
}

}  // namespace troupe::train
