// ArgumentCheck: whether a callable takes so many values and these keywords, asked of Python once
// for each.
//
// Keywords are told apart by the identity of their tuple, as a call site gives the same one each
// time; another that is equal is asked about anew. Needs the GIL.
#pragma once

#include <Python.h>

#include <cstddef>

namespace troupe::bindings {

class ArgumentCheck {
 public:
  /// `check(count, names)` raises what a wrong call is to raise; None: every call is right.
  explicit ArgumentCheck(PyObject* check)
      : check_(check == Py_None ? nullptr : Py_XNewRef(check)) {}
  ArgumentCheck(const ArgumentCheck&) = delete;
  ArgumentCheck& operator=(const ArgumentCheck&) = delete;
  ~ArgumentCheck();

  /// `keywords`: a tuple, or nullptr. False: an error is set.
  bool Admits(Py_ssize_t positional, PyObject* keywords) {
    if (check_ == nullptr) return true;
    for (const Seen& seen : seen_) {
      if (seen.positional == positional && seen.keywords == keywords) return true;
    }
    return Ask(positional, keywords);
  }

  int Traverse(visitproc visit, void* arg) {
    Py_VISIT(check_);
    return 0;
  }

 private:
  struct Seen {
    Py_ssize_t positional = -1;
    PyObject* keywords = nullptr;  // a reference
  };
  bool Ask(Py_ssize_t positional, PyObject* keywords);

  PyObject* const check_;  // a reference, or nullptr
  Seen seen_[4];
  std::size_t next_ = 0;
};

}  // namespace troupe::bindings
