// Word alignments; what is read is written and read again.
#include "analysis/links.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return lacuna::fuzz(data, size, [](std::string_view input) {
    for (const int base : {0, 1}) {
      lacuna::LinkReader reader(lacuna::write_input("links", input), base);
      for (lacuna::GoldLinks links; reader.next(links);) {
        lacuna::LinkReader again(lacuna::write_input("again", lacuna::pharaoh(links.possible) + "\n"));
        lacuna::GoldLinks same;
        if (!again.next(same) || same.possible != links.possible) __builtin_trap();
        symmetrize(links.sure, links.possible, lacuna::Symmetrization::kGrowDiagFinalAnd);
      }
    }
  });
}
