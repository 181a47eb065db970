#include "bindings/values/shapes.h"

#include <string_view>

namespace troupe::bindings {
namespace {

std::string_view Utf8(PyObject* name) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(name, &size);
  return text != nullptr ? std::string_view(text, static_cast<std::size_t>(size))
                         : std::string_view();
}

void AppendName(actors::ByteBuffer& out, std::string_view name) {
  out.AppendValue(static_cast<std::uint16_t>(name.size()));
  out.Append(name.data(), name.size());
}

}  // namespace

ShapeTable::~ShapeTable() {
  for (Recent& recent : recent_) {
    Py_XDECREF(recent.method);
    Py_XDECREF(recent.keywords);
  }
}

bool ShapeTable::Key(PyObject* method, PyObject* keywords, std::string* key) const {
  const Py_ssize_t count = keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0;
  for (Py_ssize_t i = -1; i < count; ++i) {
    PyObject* name = i < 0 ? method : PyTuple_GET_ITEM(keywords, i);
    const std::string_view text = Utf8(name);
    if (PyErr_Occurred()) return false;
    if (text.empty() || text.size() > limits_.name_bytes_max) {
      PyErr_Format(PyExc_ValueError, "a method or keyword name has %zu bytes, 1 to %d are allowed",
                   text.size(), int{limits_.name_bytes_max});
      return false;
    }
    key->append(text);
    key->push_back('\0');
  }
  return true;
}

bool ShapeTable::Find(PyObject* method, PyObject* keywords, Shape* shape) {
  for (const Recent& recent : recent_) {
    if (recent.method == method && recent.keywords == keywords) {
      *shape = {recent.id, false};
      return true;
    }
  }
  std::string key;
  if (!Key(method, keywords, &key)) return false;
  if (keywords != nullptr && PyTuple_GET_SIZE(keywords) > limits_.shape_keywords_max) {
    *shape = {actors::kNoShape, true};
    return true;
  }
  const auto found = known_.find(key);
  if (found != known_.end()) {
    *shape = {found->second.id, !found->second.defined};
    if (found->second.defined) Remember(method, keywords, found->second.id);
    return true;
  }
  if (known_.size() >= limits_.shapes_max) {
    *shape = {actors::kNoShape, true};
    return true;
  }
  const std::uint16_t id = static_cast<std::uint16_t>(known_.size());
  known_.emplace(std::move(key), Known{id, false});
  *shape = {id, true};
  return true;
}

void ShapeTable::AppendNames(actors::ByteBuffer& out, PyObject* method, PyObject* keywords) const {
  AppendName(out, Utf8(method));
  const Py_ssize_t count = keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0;
  for (Py_ssize_t i = 0; i < count; ++i) AppendName(out, Utf8(PyTuple_GET_ITEM(keywords, i)));
}

void ShapeTable::Defined(PyObject* method, PyObject* keywords, Shape shape) {
  if (shape.id == actors::kNoShape) return;
  std::string key;
  if (!Key(method, keywords, &key)) {
    PyErr_Clear();
    return;
  }
  const auto found = known_.find(key);
  if (found == known_.end()) return;
  found->second.defined = true;
  Remember(method, keywords, shape.id);
}

void ShapeTable::Remember(PyObject* method, PyObject* keywords, std::uint16_t id) {
  Recent& recent = recent_[next_recent_++ % kRecent];
  Py_INCREF(method);
  Py_XINCREF(keywords);
  const Recent before = recent;
  recent = {method, keywords, id};
  Py_XDECREF(before.method);
  Py_XDECREF(before.keywords);
}

}  // namespace troupe::bindings
