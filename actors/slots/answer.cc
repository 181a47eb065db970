#include "actors/slots/answer.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "actors/slots/waiter.h"

namespace troupe::actors {
namespace {

/// Memory of released slots, per thread: the thread that issues calls is nearly always the one that
/// drops their Refs, so that no lock is needed.
class FreeList {
 public:
  ~FreeList() {
    while (void* memory = Get()) std::free(memory);
    room_ = 0;  // a slot released after this thread's end goes to free()
  }
  void* Get() {
    Link* link = first_;
    if (link == nullptr) return nullptr;
    first_ = link->next;
    ++room_;
    return link;
  }
  bool Put(void* memory) {
    if (room_ == 0) return false;
    --room_;
    first_ = new (memory) Link{first_};
    return true;
  }

 private:
  struct Link {
    Link* next;
  };
  Link* first_ = nullptr;
  int room_ = 16384;  // 1.5 MiB
};

thread_local FreeList free_list;

}  // namespace

Answer* Answer::New(std::uint64_t id) {
  void* memory = free_list.Get();
  if (memory == nullptr) memory = std::malloc(sizeof(Answer));
  if (memory == nullptr) throw std::bad_alloc();
  return new (memory) Answer(id);
}

std::atomic<void (*)(const Answer*)> Answer::release_hook_{nullptr};
std::atomic<void (*)(const Answer*)> Answer::ask_hook_{nullptr};

void Answer::Rouse() {
  if ((state_.fetch_and(~static_cast<std::uint32_t>(kAsleep), std::memory_order_relaxed) &
       kAsleep) != 0) {
    ask_hook_.load()(this);
  }
}

void Answer::Destroy() {
  if ((state_.load(std::memory_order_relaxed) & kObject) != 0) release_hook_.load()(this);
  if (size_ > kInlineBytes) std::free(heap_);
  this->~Answer();
  if (!free_list.Put(this)) std::free(this);
}

void Answer::Fill(std::uint16_t flags, std::string_view bytes) {
  flags_ = flags;
  char* at = inline_;
  if (bytes.size() > kInlineBytes) {
    at = static_cast<char*>(std::malloc(bytes.size()));
    if (at == nullptr) throw std::bad_alloc();
    heap_ = at;
  }
  size_ = static_cast<std::uint32_t>(bytes.size());
  if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
}

void Answer::Unfill() {
  if (size_ > kInlineBytes) std::free(heap_);
  size_ = 0;
  flags_ = 0;
}

void LinkNode(Answer* slot, WaitNode& node) {
  node.next = slot->waiters;
  slot->waiters = &node;
}

void UnlinkNode(Answer* slot, const WaitNode& node) {
  WaitNode** at = &slot->waiters;
  while (*at != nullptr && *at != &node) at = &(*at)->next;
  if (*at != nullptr) *at = node.next;
}

}  // namespace troupe::actors
