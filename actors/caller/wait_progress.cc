#include "actors/caller/wait_progress.h"

#include <utility>

namespace troupe::actors {

bool WaitProgress::Satisfied() {
  if (failures_ != nullptr && failures_->met()) return true;
  while (first_ < last_ && slots_[first_]->done()) ++first_;
  if (first_ >= needed_) return true;
  if (all()) return first_ == last_;
  std::size_t done = first_;
  for (std::size_t i = first_; i < count_ && done < needed_; ++i) {
    if (slots_[i]->done()) ++done;
  }
  return done >= needed_;
}

void WaitProgress::Link(Answer* slot, Waiter& waiter, WaitNode& node) {
  node.waiter = &waiter;
  LinkNode(slot, node);
}

void WaitProgress::Hang(Waiter& waiter) {
  if (failures_ != nullptr) failures_->Attach(&waiter);
  if (!all()) {
    nodes_ = std::vector<WaitNode>(count_);
    for (std::size_t i = 0; i < count_; ++i) {
      Link(slots_[i], waiter, nodes_[i]);
      slots_[i]->Watch();  // already done: Satisfied sees it before this thread sleeps
    }
    return;
  }
  for (; last_ > first_; --last_) {
    Answer* const slot = slots_[last_ - 1];
    if (slot->done()) continue;
    Link(slot, waiter, node_);
    if (slot->Watch()) {
      hung_ = slot;
      return;
    }
    UnlinkNode(slot, node_);
  }
}

void WaitProgress::Unhang() {
  if (failures_ != nullptr) failures_->Attach(nullptr);
  if (hung_ != nullptr) UnlinkNode(std::exchange(hung_, nullptr), node_);
  for (std::size_t i = 0; i < nodes_.size(); ++i) UnlinkNode(slots_[i], nodes_[i]);
  nodes_.clear();
}

}  // namespace troupe::actors
