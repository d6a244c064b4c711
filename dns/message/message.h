#pragma once

/// Everything about DNS messages: reading, writing, EDNS.
#include "dns/message/edns.h"
#include "dns/message/message_header.h"
#include "dns/message/message_reader.h"
#include "dns/message/message_writer.h"
#include "dns/rdata/rdata.h"
