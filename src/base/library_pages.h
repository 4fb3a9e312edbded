#pragma once

/// Memory of the program's own files.
namespace lacuna {

/// Gives back the pages of the program and its libraries that were read so far and are as in their files: relocations and symbols that
/// were needed once, code that registered LibTorch's operators. A page that is needed again comes from the system's cache of files.
void give_back_library_pages();

}  // namespace lacuna
