// Method name and keyword names of a call as a small number, per channel. Needs the GIL.
//
// Looked up by the identity of the two objects (a call site gives the same ones each time), then by
// content; after shapes_max different ones, and with more than shape_keywords_max keywords, calls
// carry their names each time.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/core/call/byte_buffer.h"
#include "actors/core/call/call_frame.h"

namespace troupe::bindings {

class ShapeTable {
 public:
  explicit ShapeTable(const actors::CallLimits& limits) : limits_(limits) {}
  ShapeTable(const ShapeTable&) = delete;
  ShapeTable& operator=(const ShapeTable&) = delete;
  ~ShapeTable();

  struct Shape {
    std::uint16_t id = actors::kNoShape;
    bool named = true;  // the frame must carry the names
  };
  /// `keywords` is a tuple of str or nullptr. False: an error is set (a name that is too long).
  bool Find(PyObject* method, PyObject* keywords, Shape* shape);
  /// Appends what a named frame carries between its head and its values.
  void AppendNames(actors::ByteBuffer& out, PyObject* method, PyObject* keywords) const;
  /// The frame that carries the names was issued: later ones need not.
  void Defined(PyObject* method, PyObject* keywords, Shape shape);

 private:
  static constexpr std::size_t kRecent = 8;
  struct Recent {
    PyObject* method = nullptr;
    PyObject* keywords = nullptr;
    std::uint16_t id = 0;
  };
  struct Known {
    std::uint16_t id;
    bool defined = false;
  };
  void Remember(PyObject* method, PyObject* keywords, std::uint16_t id);
  bool Key(PyObject* method, PyObject* keywords, std::string* key) const;

  const actors::CallLimits limits_;
  Recent recent_[kRecent];
  std::size_t next_recent_ = 0;
  std::unordered_map<std::string, Known> known_;
};

}  // namespace troupe::bindings
