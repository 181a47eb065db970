#include "actors/train/device_mutex.h"

#include <map>
#include <memory>

namespace troupe::train {

Mutex& DeviceMutex(int device) {
  // Never destroyed: threads of the library may outlive the exit's destructors.
  static Mutex* const guard = new Mutex;
  static auto* const mutexes = new std::map<int, std::unique_ptr<Mutex>>;
  MutexLock lock(*guard);
  auto& mutex = (*mutexes)[device];
  if (!mutex) mutex = std::make_unique<Mutex>();
  return *mutex;
}

}  // namespace troupe::train
