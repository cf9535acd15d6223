// Trajectories on disk: JSON lines and CSV (docs/file-formats.md). Readers are strict: a file is
// read whole or refused with one line that names the place.
#ifndef MSRL_DATASETS_TRAJECTORY_FILE_H_
#define MSRL_DATASETS_TRAJECTORY_FILE_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/core/segment.h"

namespace msrl {

struct Trajectory {
  std::string name;  // from the file, or its number
  Segment segment;
};

// All trajectories of a file have the same dimensions.
struct TrajectoryFile {
  Index d = 0;
  Index q = 0;
  std::vector<Trajectory> trajectories;
};

// By extension: .jsonl, .ndjson or .json (JSON lines), .csv, .h5 or .hdf5 (episodes: geometry as
// x, action code as a).
TrajectoryFile ReadTrajectories(const std::filesystem::path& path);

// The parsers behind it; `source` is what errors call the text.
TrajectoryFile ParseTrajectoryJson(std::string_view text, std::string_view source);
TrajectoryFile ParseTrajectoryCsv(std::string_view text, std::string_view source);

namespace internal {

// Rows of numbers, all of one length, as they come out of a parser.
struct RowTable {
  Index columns = -1;  // -1 until the first row
  Index rows = 0;
  std::vector<double> values;  // row after row
};

// Collects parsed trajectories and checks that they fit each other.
class TrajectoryCollector {
 public:
  explicit TrajectoryCollector(std::string_view source) : source_(source) {}

  // `line` is where errors point; a table without rows fits any number of columns.
  void Add(std::size_t line, std::string name, const RowTable& x, const RowTable& a,
           const std::vector<double>& r);
  TrajectoryFile Finish() &&;

  [[noreturn]] void Fail(std::size_t line, std::string_view problem) const;

 private:
  std::string source_;
  TrajectoryFile file_{.d = -1, .q = -1, .trajectories = {}};
};

// The next line without its end, or false at the end of the text. "\n" and "\r\n" end lines.
bool NextLine(std::string_view& text, std::string_view& line);

}  // namespace internal
}  // namespace msrl

#endif  // MSRL_DATASETS_TRAJECTORY_FILE_H_
