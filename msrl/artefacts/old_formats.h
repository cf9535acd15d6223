// The list of formats from before there were artefacts. Files of them are in run directories, so
// they are read for ever; nobody writes them.
#ifndef MSRL_ARTEFACTS_OLD_FORMATS_H_
#define MSRL_ARTEFACTS_OLD_FORMATS_H_

#include <string_view>

#include "msrl/artefacts/artefact.h"

namespace msrl {

struct OldFormat {
  std::string_view format;  // as the file calls it
  // The header that a file of today would have; takes all entries.
  ArtefactHeader (*read)(TextReader& texts);
};

// Null if it is none of them.
const OldFormat* FindOldFormat(std::string_view format);

}  // namespace msrl

#endif  // MSRL_ARTEFACTS_OLD_FORMATS_H_
