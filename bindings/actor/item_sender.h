// Sends the items of one streaming call as they are made, no further ahead of the caller than
// allowed. Needs the GIL, which guards it.
#pragma once

#include <Python.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "actors/core/call/item_window.h"
#include "actors/server/caller_connection.h"
#include "runtime/base/mutex.h"

namespace troupe::bindings {

class ItemSender {
 public:
  ItemSender(actors::CallerConnection& peer, std::uint64_t sequence, PyObject* method,
             std::uint32_t ahead);
  ItemSender(const ItemSender&) = delete;
  ItemSender& operator=(const ItemSender&) = delete;
  ~ItemSender();

  /// Sends an item; steals it. An error with it is the item.
  void Send(PyObject* value);
  bool may_send() const { return window_.MaySend(); }
  /// The caller wants no more, or is gone.
  bool stopped() const { return stopped_; }
  /// Says that the items ended before the method did, since the caller wanted no more: such a call
  /// was cancelled, and must not be answered as one that is over.
  bool cut_off() const { return cut_off_; }
  void CutOff() { cut_off_ = true; }

  // Messages of the caller:
  void Taken(std::uint64_t items);
  void Stop();

  /// Waits without the GIL for room, or the end.
  void AwaitRoom();
  /// Calls `callable` once there is room, or the end; at once if there is.
  void OnRoom(PyObject* callable);

 private:
  void Tell();
  std::uint64_t Changes();

  const std::shared_ptr<actors::CallerConnection> peer_;
  const std::uint64_t sequence_;
  PyObject* method_;
  actors::ItemWindow window_;
  bool stopped_ = false;
  bool cut_off_ = false;
  PyObject* on_room_ = nullptr;
  Mutex mutex_;  // never held while the GIL is taken
  CondVar changed_;
  std::uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
};

/// Sends what `result` gives (steals it), waiting by `wait` when it is too far ahead. A new
/// reference to None, or nullptr with an error set: what it raised, or what `wait` did, which
/// returned false then. None is the whole of it, unless `items` is cut_off() then.
PyObject* SendItems(PyObject* result, ItemSender& items, const std::function<bool()>& wait);

}  // namespace troupe::bindings
