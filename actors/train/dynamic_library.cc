#include "actors/train/dynamic_library.h"

#include <dlfcn.h>
#include <link.h>

namespace troupe::train {
namespace {

std::string PathOf(void* handle, const std::string& asked) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !map || !map->l_name[0]) return asked;
  return map->l_name;
}

}  // namespace

StatusOr<DynamicLibrary> DynamicLibrary::Open(const LibrarySearch& search) {
  std::string tried;
  const auto open = [&tried](const std::string& name, int more) {
    void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | more);
    if (handle) return handle;
    const char* why = dlerror();
    if (!(more & RTLD_NOLOAD)) tried += std::string("\n  ") + (why ? why : name.c_str());
    return handle;
  };
  if (!search.file.empty()) {
    if (void* handle = open(search.file, 0))
      return DynamicLibrary(handle, PathOf(handle, search.file));
  } else {
    if (void* handle = open(search.soname, RTLD_NOLOAD))
      return DynamicLibrary(handle, PathOf(handle, search.soname));
    if (void* handle = open(search.soname, 0))
      return DynamicLibrary(handle, PathOf(handle, search.soname));
    for (const auto& file : search.files)
      if (void* handle = open(file, 0)) return DynamicLibrary(handle, PathOf(handle, file));
  }
  return MakeError(ErrorCode::kNotFound, search.soname + " cannot be loaded:" + tried);
}

void* DynamicLibrary::Find(const char* symbol) const { return dlsym(handle_, symbol); }

}  // namespace troupe::train
