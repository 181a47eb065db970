#include "bindings/actor/item_sink.h"

#include <utility>

namespace nb = nanobind;

namespace troupe::bindings {
namespace {

class ItemSink {
 public:
  explicit ItemSink(std::shared_ptr<ItemSender> items) : items_(std::move(items)) {}
  bool Send(nb::handle value) {
    items_->Send(Py_NewRef(value.ptr()));
    return items_->may_send() && !items_->stopped();
  }
  void OnRoom(nb::handle callable) { items_->OnRoom(callable.ptr()); }
  bool stopped() const { return items_->stopped(); }

 private:
  const std::shared_ptr<ItemSender> items_;
};

}  // namespace

PyObject* NewItemSink(std::shared_ptr<ItemSender> items) {
  try {
    return nb::cast(new ItemSink(std::move(items)), nb::rv_policy::take_ownership).release().ptr();
  } catch (nb::python_error& error) {
    error.restore();
    return nullptr;
  }
}

void BindItemSink(nb::module_& m) {
  nb::class_<ItemSink>(m, "_ItemSink", "Takes the items of one streaming call.")
      .def("send", &ItemSink::Send, nb::arg("value").none(), "False: wait, by on_room, or stop.")
      .def("on_room", &ItemSink::OnRoom, nb::arg("callable"),
           "Called once there is room for another item, or nobody wants one.")
      .def_prop_ro("stopped", &ItemSink::stopped);
}

}  // namespace troupe::bindings
