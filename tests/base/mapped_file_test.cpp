#include "base/mapped_file.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <string>

#include "base/error.h"
#include "child.h"
#include "scratch_folder.h"

namespace lacuna {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

const std::string kText(100'000, 'x');

TEST(MappedFile, HoldsTheBytesOfTheFile) {
  const ScratchFolder folder;
  const MappedFile small(folder.write("file", "bytes")), nothing(folder.write("nothing", "")), mapped(folder.write("large", kText), 10);
  EXPECT_EQ(std::string(small.data(), small.size()), "bytes");
  EXPECT_EQ(std::string(mapped.data(), mapped.size()), kText);
  EXPECT_EQ(nothing.size(), 0u);
  EXPECT_THROW(MappedFile(folder / "none"), DataError);
}

TEST(MappedFile, ThatIsSmallIsNotChangedByOthers) {
  const ScratchFolder folder;
  const MappedFile small(folder.write("file", kText));
  fs::resize_file(folder / "file", 0);
  EXPECT_EQ(std::string(small.data(), small.size()), kText);
  EXPECT_NO_THROW(small.require_unchanged());
}

TEST(MappedFile, ThatIsMappedSaysWhenItWasWrittenTo) {
  const ScratchFolder folder;
  const MappedFile mapped(folder.write("file", kText), 0);
  EXPECT_NO_THROW(mapped.require_unchanged());
  fs::last_write_time(folder / "file", fs::last_write_time(folder / "file") + std::chrono::seconds(1));  // as a write does
  EXPECT_THAT(message_of<MachineError>([&] { mapped.require_unchanged(); }), HasSubstr("/file: it was written to while it was in use"));
}

TEST(MappedFile, ThatIsCutShortEndsTheProgramWithItsName) {
  const ScratchFolder folder;
  const std::string file = folder.write("cut\x1b.ids", kText);
  EXPECT_EQ(exit_code_of_child([&] {
              report_cut_files();
              FILE* const said = std::freopen((folder / "said").c_str(), "w", stderr);
              const MappedFile other(folder.write("other", kText), 0), mapped(file, 0);
              fs::resize_file(file, 10);
              const volatile char* const bytes = mapped.data();
              return said == nullptr ? 2 : 10 + bytes[kText.size() - 1];
            }),
            1);
  EXPECT_EQ(bytes_of(folder / "said"), "lacuna: error: " + (folder / "cut\\x1b.ids") +
                                           ": it was cut short while it was in use; start again when nothing writes to it\n");
}

TEST(MappedFile, LeavesOtherSignalsOfTheKindAlone) {
  EXPECT_EQ(exit_code_of_child([&] {
              report_cut_files();
              return raise(SIGBUS) == 0 && raise(SIGBUS) == 0 ? 2 : 3;
            }),
            1000 + SIGBUS);
}

}  // namespace
}  // namespace lacuna
