// Support of the generated python_convert.cc: one conversion per kind of field. Needs the GIL; a
// failed conversion leaves a Python exception set.
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/ids.h"

namespace troupe::wire {

inline PyObject* IntToPython(std::uint64_t value) { return PyLong_FromUnsignedLongLong(value); }
inline PyObject* IntToPython(std::int32_t value) { return PyLong_FromLong(value); }
inline PyObject* IntToPython(std::uint32_t value) { return PyLong_FromUnsignedLong(value); }
inline PyObject* IntToPython(std::uint16_t value) { return PyLong_FromUnsignedLong(value); }
inline PyObject* TextToPython(const std::string& text) {
  // A log line or a path may hold any bytes: none of them may make a message unreadable.
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
}
inline PyObject* DataToPython(const std::string& bytes) {
  return PyBytes_FromStringAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size()));
}
inline PyObject* IdToPython(const Id128& id) {
  return TextToPython(id.hi == 0 && id.lo == 0 ? std::string() : IdToHex(id));
}
template <class T, class Convert>
PyObject* ListToPython(const std::vector<T>& items, Convert convert) {
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(items.size()));
  if (list == nullptr) return nullptr;
  for (std::size_t i = 0; i < items.size(); ++i) {
    PyObject* item = convert(items[i]);
    if (item == nullptr) {
      Py_DECREF(list);
      return nullptr;
    }
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), item);
  }
  return list;
}
/// The text as Python's one string of it, kept for the life of the process.
inline PyObject* Interned(std::string_view text) {
  PyObject* string = PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  if (string != nullptr) PyUnicode_InternInPlace(&string);
  return string;
}
template <class Enum>
PyObject* EnumToPython(Enum value, Enum last) {
  static std::vector<PyObject*> names(static_cast<std::size_t>(last) + 1);
  const auto index = static_cast<std::size_t>(value);
  if (index >= names.size()) return Interned(NameOf(value));
  if (names[index] == nullptr) names[index] = Interned(NameOf(value));
  Py_XINCREF(names[index]);
  return names[index];
}
/// Takes `value`; on failure drops `dict`.
inline bool Put(PyObject* dict, PyObject* key, PyObject* value) {
  const bool done = key != nullptr && value != nullptr && PyDict_SetItem(dict, key, value) == 0;
  Py_XDECREF(value);
  if (!done) Py_DECREF(dict);
  return done;
}

inline bool WrongType(const char* wanted, PyObject* value) {
  PyErr_Format(PyExc_TypeError, "expected %s, got %.100s", wanted, Py_TYPE(value)->tp_name);
  return false;
}
inline bool BoolFromPython(PyObject* value, bool& out) {
  const int truth = PyObject_IsTrue(value);
  out = truth == 1;
  return truth >= 0;
}
inline bool FloatFromPython(PyObject* value, double& out) {
  out = PyFloat_AsDouble(value);
  return !(out == -1.0 && PyErr_Occurred());
}
template <class T>
bool IntFromPython(PyObject* value, T& out) {
  if constexpr (std::numeric_limits<T>::is_signed) {
    const long long number = PyLong_AsLongLong(value);
    if (number == -1 && PyErr_Occurred()) return false;
    out = static_cast<T>(number);
    if (static_cast<long long>(out) == number) return true;
  } else {
    const unsigned long long number = PyLong_AsUnsignedLongLong(value);
    if (number == static_cast<unsigned long long>(-1) && PyErr_Occurred()) return false;
    out = static_cast<T>(number);
    if (static_cast<unsigned long long>(out) == number) return true;
  }
  PyErr_SetString(PyExc_OverflowError, "the number does not fit its field");
  return false;
}
inline bool TextFromPython(PyObject* value, std::string& out) {
  if (!PyUnicode_Check(value)) return WrongType("str", value);
  Py_ssize_t size = 0;
  if (const char* text = PyUnicode_AsUTF8AndSize(value, &size); text != nullptr) {
    out.assign(text, static_cast<std::size_t>(size));
    return true;
  }
  PyErr_Clear();  // bytes that were no UTF-8, on their way back
  PyObject* bytes = PyUnicode_AsEncodedString(value, "utf-8", "surrogateescape");
  if (bytes == nullptr) return false;
  out.assign(PyBytes_AS_STRING(bytes), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes)));
  Py_DECREF(bytes);
  return true;
}
inline bool DataFromPython(PyObject* value, std::string& out) {
  Py_buffer view;
  if (PyObject_GetBuffer(value, &view, PyBUF_SIMPLE) != 0) return false;
  out.assign(static_cast<const char*>(view.buf), static_cast<std::size_t>(view.len));
  PyBuffer_Release(&view);
  return true;
}
template <class Id>
bool IdFromPython(PyObject* value, Id& out) {
  std::string text;
  if (!TextFromPython(value, text)) return false;
  if (text.empty()) {
    out = Id();
    return true;
  }
  const std::optional<Id128> id = IdFromHex(text);
  if (!id) {
    PyErr_Format(PyExc_ValueError, "%.100s is not an id (32 hex digits)", text.c_str());
    return false;
  }
  out = Id(*id);
  return true;
}
template <class Enum>
bool EnumFromPython(PyObject* value, Enum& out, Enum last) {
  std::string text;
  if (!TextFromPython(value, text)) return false;
  for (unsigned i = 0; i <= static_cast<unsigned>(last); ++i) {
    if (text == NameOf(static_cast<Enum>(i))) {
      out = static_cast<Enum>(i);
      return true;
    }
  }
  PyErr_Format(PyExc_ValueError, "%.100s is not a value of this enumeration", text.c_str());
  return false;
}
template <class T, class Convert>
bool ListFromPython(PyObject* value, std::vector<T>& out, Convert convert) {
  PyObject* fast = PySequence_Fast(value, "expected a list");
  if (fast == nullptr) return false;
  out.clear();
  bool good = true;
  for (Py_ssize_t i = 0; good && i < PySequence_Fast_GET_SIZE(fast); ++i) {
    T item{};
    good = convert(PySequence_Fast_GET_ITEM(fast, i), item);
    out.push_back(std::move(item));
  }
  Py_DECREF(fast);
  return good;
}
template <class Visit>
bool EachItem(PyObject* fields, const char* what, Visit visit) {
  if (!PyDict_Check(fields)) return WrongType(what, fields);
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(fields, &position, &key, &value)) {
    if (!PyUnicode_Check(key)) return WrongType("str", key);
    Py_ssize_t size = 0;
    const char* name = PyUnicode_AsUTF8AndSize(key, &size);
    if (name == nullptr || !visit(std::string_view(name, static_cast<std::size_t>(size)), value))
      return false;
  }
  return true;
}
inline bool UnknownKey(const char* what, std::string_view name) {
  PyErr_Format(PyExc_TypeError, "%s has no field %s", what, std::string(name).c_str());
  return false;
}

}  // namespace troupe::wire
