#include "base/system_error.h"

#include <cstring>

#include "base/error.h"

namespace lacuna {

bool is_users_mistake(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case EEXIST:
    case ENOTEMPTY:
    case EACCES:
    case EPERM:
    case EBADF:  // a standard stream that the program was started without
    case EINVAL:
    case ENXIO:
    case ELOOP:
    case ENAMETOOLONG:
      return true;
    default:
      return false;
  }
}

void fail_by(int error, const std::string& before, const std::string& after) {
  std::string text = before;
  text.append(std::strerror(error)).append(after);
  if (is_users_mistake(error)) throw DataError(text);
  throw MachineError(text);
}

}  // namespace lacuna
