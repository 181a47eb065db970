#include "actors/slots/completions.h"

#include "runtime/base/check.h"

namespace troupe::actors {
namespace {

Completions& (*the_source)() = nullptr;

}  // namespace

Completions& Completions::Current() {
  TROUPE_CHECK(the_source != nullptr,
               "nothing in this program waits for answers: actors/caller is not linked");
  return the_source();
}

bool Completions::SetSource(Completions& (*source)()) {
  the_source = source;
  return true;
}

}  // namespace troupe::actors
