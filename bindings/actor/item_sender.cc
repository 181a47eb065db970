#include "bindings/actor/item_sender.h"

#include <utility>

#include "bindings/actor/answer.h"
#include "bindings/support/gil.h"

namespace troupe::bindings {

ItemSender::ItemSender(actors::CallerConnection& peer, std::uint64_t sequence, PyObject* method,
                       std::uint32_t ahead)
    : peer_(peer.shared_from_this()),
      sequence_(sequence),
      method_(Py_NewRef(method)),
      window_(ahead) {}

ItemSender::~ItemSender() {
  Py_DECREF(method_);
  Py_XDECREF(on_room_);
}

void ItemSender::Send(PyObject* value) {
  char space[512];
  actors::ByteBuffer frame(space, sizeof space);
  const actors::CallLimits limits;
  std::uint16_t flags = 0;
  window_.Sent(WriteItem({*peer_, sequence_, method_, {}, limits}, value, frame, &flags));
  peer_->Reply(sequence_, flags, frame);
  peer_->Flush();
}

void ItemSender::Taken(std::uint64_t items) {
  window_.Taken(items);
  if (window_.MaySend()) Tell();
}

void ItemSender::Stop() {
  stopped_ = true;
  Tell();
}

void ItemSender::Tell() {
  {
    MutexLock lock(mutex_);
    ++changes_;
  }
  changed_.NotifyAll();
  PyObject* callable = std::exchange(on_room_, nullptr);
  if (callable == nullptr) return;
  PyObject* told = PyObject_CallNoArgs(callable);
  if (told == nullptr) PyErr_WriteUnraisable(callable);
  Py_XDECREF(told);
  Py_DECREF(callable);
}

void ItemSender::AwaitRoom() {
  while (!may_send() && !stopped_) {
    const std::uint64_t seen = Changes();
    const GilReleased released;
    MutexLock lock(mutex_);
    while (changes_ == seen) changed_.Wait(mutex_);
  }
}

std::uint64_t ItemSender::Changes() {
  MutexLock lock(mutex_);
  return changes_;
}

void ItemSender::OnRoom(PyObject* callable) {
  Py_XSETREF(on_room_, Py_NewRef(callable));
  if (may_send() || stopped_) Tell();
}

PyObject* SendItems(PyObject* result, ItemSender& items, const std::function<bool()>& wait) {
  PyObject* iterator = PyObject_GetIter(result);
  Py_DECREF(result);
  if (iterator == nullptr) return nullptr;
  bool good = true;
  bool over = false;  // by itself
  while (good && !items.stopped()) {
    PyObject* item = PyIter_Next(iterator);
    over = item == nullptr;
    if (over) break;
    items.Send(item);
    good = wait();
  }
  PyObject* type = nullptr;
  PyObject* error = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &error, &traceback);
  if ((!good || items.stopped()) && PyObject_HasAttrString(iterator, "close")) {
    // nobody takes what follows
    PyObject* closed = PyObject_CallMethod(iterator, "close", nullptr);
    if (closed == nullptr) PyErr_WriteUnraisable(iterator);
    Py_XDECREF(closed);
  }
  Py_DECREF(iterator);
  if (type == nullptr) {
    if (!over) items.CutOff();
    Py_RETURN_NONE;
  }
  PyErr_Restore(type, error, traceback);
  return nullptr;
}

}  // namespace troupe::bindings
