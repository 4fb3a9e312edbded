#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/line_reader.h"
#include "base/spelling.h"
#include "config/on_bad_line.h"
#include "metrics/run_sacrebleu.h"
#include "text/joiner.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

/// Can sacreBLEU read this file itself, of which the first line was read?
bool is_readable_as_named(const fs::path& file, const LineReader& reader) {
  std::error_code ignored;
  return file != "-" && fs::is_regular_file(file, ignored) && reader.compression() == (file.extension() == ".gz" ? "gzip" : "") &&
         !reader.has_byte_order_mark();
}

}  // namespace

ScoredFiles::ScoredFiles(const std::vector<fs::path>& systems, const std::vector<fs::path>& references, std::string joiner,
                         OnBadLine bad_lines)
    : joiner_(std::move(joiner)), on_bad_line_(bad_lines) {
  for (const fs::path& file : systems) systems_.push_back(add(file));
  for (const fs::path& file : references) references_.push_back(add(file));
  if (bad_lines_.empty()) return;
  if (num_lines() == 0) throw DataError(first_file_ + ": there is nothing to score, as all lines are bad, here or in the other files");
  leave_out_bad_lines(systems_);
  leave_out_bad_lines(references_);
}

/// Reads a line; one that is passed over is empty. Returns false at the end.
bool ScoredFiles::next_line(LineReader& reader, std::string& line) {
  try {
    return reader.next_clean(line);
  } catch (const LineError& error) {
    pass_over(error, on_bad_line_, "");
    bad_lines_.insert(reader.line_number());
    line.clear();
    return true;
  }
}

/// Puts copies without the bad lines in the place of files.
void ScoredFiles::leave_out_bad_lines(std::vector<std::string>& files) {
  for (std::string& file : files) {
    LineReader reader(file);
    std::string line;
    const auto next = [&] {
      try {
        return reader.next(line);
      } catch (const LineError&) {  // one that is too long, and known to be bad
        return true;
      }
    };
    std::vector<std::string> good;
    while (next())
      if (!bad_lines_.contains(reader.line_number())) good.push_back(line);
    file = copies_.emplace_back().path().string();
    write_lines(file, good);
  }
}

std::string ScoredFiles::add(const fs::path& file) {
  const std::string shown = file == "-" ? "standard input" : file.string();
  std::error_code ignored;
  if (fs::is_directory(file, ignored)) throw DataError(shown + " is a directory; expected a text file with one translation a line");
  LineReader reader(file);
  fs::path readable = file;
  std::optional<FileWriter> copy;
  for (std::string line; next_line(reader, line);) {
    if (!joiner_.empty()) line = joined(line, joiner_);
    if (reader.line_number() == 1 && (!joiner_.empty() || !is_readable_as_named(file, reader))) {
      readable = copies_.emplace_back().path();
      copy.emplace(readable);
    }
    if (copy) copy->write(line + '\n');
  }
  if (copy) copy->flush();

  const int64_t count = reader.line_number();
  if (count == 0) throw DataError(shown + " is empty; expected one translation a line");
  if (num_lines_ >= 0 && count != num_lines_) {
    throw DataError(first_file_ + " has " + counted(num_lines_, "line") + ", " + shown + " has " + std::to_string(count) +
                    "; a translation and its references need one line for each sentence");
  }
  if (num_lines_ < 0) first_file_ = shown;
  num_lines_ = count;
  return readable.native().starts_with('-') ? "./" + readable.string() : readable.string();  // or it reads as an option
}

void write_lines(const fs::path& file, const std::vector<std::string>& lines) {
  FileWriter writer(file);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find('\n') != std::string::npos) throw DataError("sentence " + std::to_string(i + 1) + " to be scored holds a line break");
    writer.write(lines[i] + '\n');
  }
  writer.flush();
}

}  // namespace lacuna
